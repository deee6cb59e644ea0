// SPDX-License-Identifier: Apache-2.0

/// What is wrong with a command line, as a sentence that says what to write instead.
package struct UsageError: Error {
    package let message: String

    package init(_ message: String) {
        self.message = message
    }
}

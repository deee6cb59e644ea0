// SPDX-License-Identifier: Apache-2.0

/// What went wrong below a test, as a sentence.
public struct TestSupportError: Error, CustomStringConvertible {
    /// The sentence.
    public let description: String

    /// Makes an error out of a sentence.
    public init(_ description: String) {
        self.description = description
    }
}

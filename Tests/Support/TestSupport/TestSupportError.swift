// SPDX-License-Identifier: Apache-2.0

/// A failure of test support, as a sentence.
public struct TestSupportError: Error, CustomStringConvertible {
    /// The sentence.
    public let description: String

    /// Creates an error from a sentence.
    public init(_ description: String) {
        self.description = description
    }
}

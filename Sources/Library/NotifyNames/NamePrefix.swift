// SPDX-License-Identifier: Apache-2.0

/// A prefix of names, compared byte by byte, as names are; the empty prefix matches every name.
package struct NamePrefix: Hashable, Sendable, CustomStringConvertible {
    package let string: String

    package init(_ string: String) {
        var string = string
        string.makeContiguousUTF8()
        self.string = string
    }

    /// The prefix that a pattern such as `com.example.*` stands for: every name that begins with `com.example.`. `*` alone
    /// stands for every name.
    ///
    /// - Returns: nil if the text is no pattern, and so is a name.
    package init?(pattern: String) {
        let isPattern = pattern == "*" || pattern.utf8.suffix(2).elementsEqual(".*".utf8)
        guard isPattern else { return nil }
        self.init(String(decoding: pattern.utf8.dropLast(), as: UTF8.self))
    }

    package var description: String { string }

    /// The pattern that stands for it. The part before the asterisk need not end in a dot.
    package var pattern: String { string + "*" }

    /// Whether nothing but names that stay in the process begins with it.
    package var staysInProcess: Bool { string.utf8.starts(with: NotifyName.Scope.processPrefix.utf8) }

    package func begins(_ name: NotifyName) -> Bool { name.string.utf8.starts(with: string.utf8) }

    package static func == (left: NamePrefix, right: NamePrefix) -> Bool {
        left.string.utf8.elementsEqual(right.string.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        // Contiguous in every prefix: see the initializer.
        _ = string.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

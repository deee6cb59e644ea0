// SPDX-License-Identifier: Apache-2.0

/// A prefix of names, compared byte by byte, as names are; the empty prefix matches every name.
package struct NamePrefix: Hashable, Sendable, CustomStringConvertible {
    package let string: String

    package init(_ string: String) {
        var string = string
        string.makeContiguousUTF8()
        self.string = string
    }

    package var description: String { string }

    package func begins(_ name: NotifyName) -> Bool { name.string.utf8.starts(with: string.utf8) }

    package static func == (left: NamePrefix, right: NamePrefix) -> Bool {
        left.string.utf8.elementsEqual(right.string.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        // Contiguous in every prefix: see the initializer.
        _ = string.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// One argument as passed by the kernel: bytes that end with NUL and need not be UTF-8.
///
/// `CommandLine.arguments` would replace invalid UTF-8 by U+FFFD, which would turn a bad name into another, valid one,
/// and break paths.
///
/// `@unchecked Sendable`: the pointer does not change, and what it points to is only read. It is never freed: the
/// kernel has put the arguments on the stack of the first thread, above every frame, and copies are leaked on purpose.
package struct Argument: @unchecked Sendable {
    package let start: UnsafePointer<CChar>

    package init(_ start: UnsafePointer<CChar>) {
        self.start = start
    }

    /// An argument made of `string`, which is never freed: for tests.
    package init?(copying string: String) {
        guard let copy = strdup(string) else { return nil }
        start = UnsafePointer(copy)
    }

    /// The arguments of main(), with the program's own name.
    ///
    /// - Parameter vector: ends with NULL.
    package static func list(_ vector: UnsafePointer<UnsafeMutablePointer<CChar>?>) -> [Argument] {
        var arguments: [Argument] = []
        var next = vector
        while let argument = next.pointee {
            arguments.append(Argument(argument))
            next += 1
        }
        return arguments
    }

    package var count: Int { strlen(start) }

    /// The bytes without the NUL; valid for the lifetime of the process.
    package var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: start, count: count)
    }

    /// The text, if it is UTF-8.
    package var string: String? {
        String(validating: bytes, as: UTF8.self)
    }

    /// The text for a message: quoted, on one line, and truncated.
    package var quoted: String {
        "'" + Printable.text(bytes, limit: 60) + "'"
    }

    package func dropFirst(_ bytes: Int) -> Argument {
        Argument(start + min(bytes, count))
    }

    package static func == (argument: Argument, text: StaticString) -> Bool {
        strcmp(argument.start, UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)) == 0
    }
}

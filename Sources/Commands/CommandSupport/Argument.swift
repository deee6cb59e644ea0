// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCore
import NotifyNames

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

    /// An argument of our own.
    package init(literal text: StaticString) {
        start = UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    /// An argument made of `string`, which is never freed; nil if there is no memory for it.
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
        strcmp(argument.start, Argument(literal: text).start) == 0
    }
}

extension Duration {
    /// Parses a duration: `500ms`, `2s`, `1.5m`, `1h30m`, `1d`; a plain number means seconds.
    package init(argument: Argument) throws(UsageError) {
        do throws(TextFault) {
            self = try Duration(text: argument.bytes)
        } catch .malformed {
            throw UsageError(
                "\(argument.quoted) is not a duration; use a number with ms, s, m, h or d, as in 500ms, 1.5s or 1h30m"
            )
        } catch {
            throw UsageError("\(argument.quoted) is longer than a hundred years")
        }
    }

    /// The total in nanoseconds.
    package var inNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}

extension NotifyName {
    /// The name given by an operand. One that would not leave this process is refused: to post it or to wait for it in a
    /// process of its own has no effect.
    ///
    /// - Parameters:
    ///   - isLiteral: whether it may have a blank at an end, which is a mistake otherwise.
    ///   - consequence: follows "is not a valid name" in the message, as in ", so nothing was posted".
    package init(operand: Argument, isLiteral: Bool, consequence: String = "") throws(UsageError) {
        if !isLiteral, let blank = NameMistake.blank(in: operand.bytes) {
            throw UsageError("\(operand.quoted) \(blank)\(consequence)\(NameMistake.remedy)")
        }
        do throws(NotifyBusError) {
            try self.init(utf8: operand.bytes)
        } catch {
            throw UsageError("\(operand.quoted) is not a valid name\(consequence): \(error.description)")
        }
        if staysInProcess {
            throw UsageError("\(operand.quoted) reaches no other program\(consequence): \(NotifyName.confinement)")
        }
    }

    /// Why a `self.` name is of no use to a command.
    package static let confinement = "a name that begins with 'self.' stays in the process that posts it"
}

extension NamePrefix {
    /// The prefix given by an operand that ends in `.*`, or is `*`; nil for any other operand.
    package init?(operand: Argument) throws(UsageError) {
        guard let text = operand.string, let prefix = NamePrefix(pattern: text) else { return nil }
        guard prefix.string.utf8.count <= NotifyName.maximumLength else {
            throw UsageError(
                "\(operand.quoted) is not valid: at most \(NotifyName.maximumLength) bytes can come before the '*'"
            )
        }
        if prefix.staysInProcess {
            throw UsageError("\(operand.quoted) matches nothing from other programs: \(NotifyName.confinement)")
        }
        self = prefix
    }
}

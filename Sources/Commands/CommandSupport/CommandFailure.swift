// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCore

/// What is wrong with a command line.
package struct UsageError: Error {
    package let message: String

    package init(_ message: String) {
        self.message = message
    }
}

/// Why a command did not do what it should, and the corresponding exit status.
package struct CommandFailure: Error {
    package let message: String
    package let code: ExitCode
    /// Whether it would happen to anything else that the command may try.
    package let isLasting: Bool

    package init(_ message: String, code: ExitCode = .failed, isLasting: Bool = false) {
        self.message = message
        self.code = code
        self.isLasting = isLasting
    }

    package init(_ error: NotifyBusError) {
        self.init(error.description, code: ExitCode(error), isLasting: true)
    }

    /// - Parameter error: one of a call without a time limit of the user's: if it took too long, the bus is to blame.
    package init(lateBus error: NotifyBusError) {
        self.init(error.description, code: error.code == .timedOut ? .unavailable : ExitCode(error))
    }

    package init(cannotWriteOutput number: Int32) {
        self.init("can't write to standard output: \(describe(errno: number))")
    }

    /// The kernel has refused a resource.
    init(cannotCreate what: String, _ number: Int32) {
        self.init("cannot create \(what): \(describe(errno: number))")
    }
}

extension StandardStreams {
    /// Writes text to standard output.
    ///
    /// - Returns: whether it still has a reader; that it has none is not an error.
    @discardableResult
    package static func print(_ text: String) throws(CommandFailure) -> Bool {
        switch write(text, to: STDOUT_FILENO) {
        case .written: return true
        case .readerGone: return false
        case .gaveUp: throw CommandFailure("standard output is not being read", code: .timedOut)
        case .failed(let number): throw CommandFailure(cannotWriteOutput: number)
        }
    }
}

extension WakeDescriptor {
    /// Creates the descriptor by which other threads wake the main thread.
    package static func ofCommand() throws(CommandFailure) -> WakeDescriptor {
        do throws(NotifyBusError) {
            return try WakeDescriptor()
        } catch {
            throw CommandFailure(cannotCreate: "an eventfd", error.errno ?? ENFILE)
        }
    }
}

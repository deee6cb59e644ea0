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

    package init(_ message: String, code: ExitCode = .failed) {
        self.message = message
        self.code = code
    }

    package init(_ error: NotifyBusError) {
        self.init(error.description, code: ExitCode(error))
    }

    /// - Parameter error: one of a call without a time limit of the user's: if it took too long, the bus is to blame.
    package init(lateBus error: NotifyBusError) {
        self.init(error.description, code: error.code == .timedOut ? .unavailable : ExitCode(error))
    }

    /// The kernel has refused a resource.
    init(cannotCreate what: String, _ number: Int32) {
        self.init("cannot create \(what): \(Diagnostics.text(of: number))")
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

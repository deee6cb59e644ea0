// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// The exit statuses of every command of this package.
package struct ExitCode: RawRepresentable, Equatable, Sendable {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    package static let done = ExitCode(rawValue: 0)
    package static let failed = ExitCode(rawValue: 1)
    package static let timedOut = ExitCode(rawValue: 2)
    /// `EX_USAGE` of `<sysexits.h>`.
    package static let usage = ExitCode(rawValue: 64)
    /// `EX_UNAVAILABLE` of `<sysexits.h>`: no bus, or no agent.
    package static let unavailable = ExitCode(rawValue: 69)

    /// What the help says about a command killed by a signal.
    package static let killed = (
        status: "128+N", meaning: "Killed by signal N, as shells report it: 130 for SIGINT, 143 for SIGTERM."
    )

    package init(_ error: NotifyBusError) {
        switch error.code {
        case .noBus, .disconnected, .noAgent: self = .unavailable
        case .invalidName: self = .usage
        case .timedOut: self = .timedOut
        default: self = .failed
        }
    }
}

extension Diagnostics {
    /// Reports an error that ends the command.
    ///
    /// - Returns: the exit status that fits it.
    package func fail(_ error: any Error) -> ExitCode {
        switch error {
        case let error as CommandFailure:
            self.error(error.message)
            return error.code
        case let error as NotifyBusError:
            self.error(error.description)
            return ExitCode(error)
        default:
            self.error("\(error)")
            return .failed
        }
    }
}

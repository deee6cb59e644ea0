// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCore

/// Prints messages to standard error: one line each, prefixed with the command's name.
package struct Diagnostics: Sendable {
    private let name: String
    package var verbosity = CommonOptions.Verbosity.normal

    package init(command name: String) {
        self.name = name
    }

    /// An error; printed even with `-q`.
    package func error(_ message: String) {
        // A single write, so that the lines of several commands on one terminal or in one log stay intact.
        _ = StandardStreams.write(name + ": " + Printable.text(message) + "\n", to: STDERR_FILENO)
    }

    /// A notice, but not an error; not printed with `-q`.
    package func notice(_ message: @autoclosure () -> String) {
        if verbosity != .quiet { error(message()) }
    }

    /// Printed only with `-v`.
    package func detail(_ message: @autoclosure () -> String) {
        if verbosity == .verbose { error(message()) }
    }
}

/// Where to look when the lifecycle agent does not do what it should.
package enum AgentHint {
    /// For the end of a sentence. How the agent was started is not known for a bus that is neither of the usual two.
    package static func text(for bus: NotifyCenter.Bus?) -> String {
        switch (bus ?? .session).kind {
        case .session: "; see 'systemctl --user status notify-agent'"
        case .system: "; see 'systemctl status notify-agent'"
        case .address: ""
        }
    }

    /// The command that starts one.
    package static func command(for bus: NotifyCenter.Bus?) -> String {
        switch (bus ?? .session).kind {
        case .session: "notify-agent"
        case .system: "notify-agent --system"
        case .address(let address): "notify-agent --address '\(address)'"
        }
    }
}

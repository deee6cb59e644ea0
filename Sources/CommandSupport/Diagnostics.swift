// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What a command says on standard error: one line at a time, under its own name.
package struct Diagnostics: Sendable {
    private let name: String
    package var verbosity = CommonOptions.Verbosity.normal

    package init(command name: String) {
        self.name = name
    }

    /// Something went wrong; said even with `-q`.
    package func error(_ message: String) {
        // One write, so that the lines of several commands on one terminal or in one log stay whole.
        _ = StandardStreams.write(name + ": " + Printable.text(message) + "\n", to: STDERR_FILENO)
    }

    /// Worth knowing, but no failure; not said with `-q`.
    package func notice(_ message: @autoclosure () -> String) {
        if verbosity != .quiet { error(message()) }
    }

    /// Said with `-v` only.
    package func detail(_ message: @autoclosure () -> String) {
        if verbosity == .verbose { error(message()) }
    }

    /// The text of an error number, as `strerror` has it.
    package static func text(of number: Int32) -> String {
        strerror(number).map { String(cString: $0) } ?? "error \(number)"
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

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

    /// The text for an error number, from `strerror`.
    package static func text(of number: Int32) -> String {
        strerror(number).map { String(cString: $0) } ?? "error \(number)"
    }
}

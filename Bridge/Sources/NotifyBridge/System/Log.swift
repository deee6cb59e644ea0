// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What a bridge prints on standard error.
package struct Log: Sendable {
    package enum Level: Int, Sendable {
        /// Only the reason for exiting.
        case quiet
        /// What users should know: connections that come and go, and problems.
        case normal
        /// Also each name.
        case verbose
    }

    private let level: Level

    package init(_ level: Level) {
        self.level = level
    }

    var isVerbose: Bool { level == .verbose }

    package func error(_ text: String) { write(text) }

    package func notice(_ text: String) {
        if level != .quiet { write(text) }
    }

    package func detail(_ text: @autoclosure () -> String) {
        if level == .verbose { write(text()) }
    }

    private func write(_ text: String) {
        let line = Array("notify-bridge: \(Printable.text(text))\n".utf8)
        _ = Glibc.write(2, line, line.count)
    }
}

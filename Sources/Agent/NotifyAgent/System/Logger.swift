// SPDX-License-Identifier: Apache-2.0

/// The agent's log, line by line. A logging package would be the only dependency of this project.
package struct Logger: Sendable {
    /// The importance of a line. The values are the priorities of syslog(3).
    package enum Level: UInt8, Sendable {
        case error = 3
        case warning, notice, info, debug
    }

    /// What a line is about, by key.
    package typealias Metadata = [String: String]

    private let level: Level
    private let write: @Sendable (Level, String) -> Void

    /// - Parameters:
    ///   - level: less important lines are not written, and their text is not even created.
    ///   - write: called with each line, on the logging thread. Text chosen by others is included unescaped.
    package init(level: Level, write: @escaping @Sendable (Level, String) -> Void) {
        self.level = level
        self.write = write
    }

    package func error(_ message: @autoclosure () -> String, metadata: @autoclosure () -> Metadata = [:]) {
        log(.error, message, metadata)
    }

    package func warning(_ message: @autoclosure () -> String, metadata: @autoclosure () -> Metadata = [:]) {
        log(.warning, message, metadata)
    }

    package func notice(_ message: @autoclosure () -> String, metadata: @autoclosure () -> Metadata = [:]) {
        log(.notice, message, metadata)
    }

    package func info(_ message: @autoclosure () -> String, metadata: @autoclosure () -> Metadata = [:]) {
        log(.info, message, metadata)
    }

    package func debug(_ message: @autoclosure () -> String, metadata: @autoclosure () -> Metadata = [:]) {
        log(.debug, message, metadata)
    }

    private func log(_ level: Level, _ message: () -> String, _ metadata: () -> Metadata) {
        guard level.rawValue <= self.level.rawValue else { return }
        var line = message()
        for (key, value) in metadata().sorted(by: { $0.key < $1.key }) { line += " \(key)=\(value)" }
        write(level, line)
    }
}

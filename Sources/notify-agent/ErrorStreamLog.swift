// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import Logging

/// Writes log lines to standard error: with the time of day, unless a journal adds that itself.
struct ErrorStreamLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level
    private let program: String
    private let isForJournal = getenv("JOURNAL_STREAM") != nil

    init(program: String, level: Logger.Level) {
        self.program = program
        logLevel = level
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var line = isForJournal ? priority(event.level) : timestamp() + " " + program + ": "
        line += "\(event.message)"
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        for (key, value) in all.sorted(by: { $0.key < $1.key }) { line += " \(key)=\(value)" }
        _ = StandardStreams.write(Printable.text(line) + "\n", to: STDERR_FILENO)
    }

    /// What a journal takes the importance of a line from. See sd-daemon(3).
    private func priority(_ level: Logger.Level) -> String {
        switch level {
        case .trace, .debug: "<7>"
        case .info: "<6>"
        case .notice: "<5>"
        case .warning: "<4>"
        case .error: "<3>"
        case .critical: "<2>"
        }
    }

    private func timestamp() -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        var fields = tm()
        localtime_r(&now.tv_sec, &fields)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { buffer in
            guard let start = buffer.baseAddress, strftime(start, buffer.count, "%H:%M:%S", &fields) > 0 else {
                return ""
            }
            return String(cString: start)
        }
    }
}

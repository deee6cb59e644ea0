// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent

extension Logger {
    /// Writes lines to standard error, with the time of day unless a journal adds that itself.
    ///
    /// - Parameter program: the program's name.
    static func toStandardError(of program: String, level: Level) -> Logger {
        let isForJournal = getenv("JOURNAL_STREAM") != nil
        return Logger(level: level) { level, line in
            // From this a journal takes the importance of a line. See sd-daemon(3).
            let beginning = isForJournal ? "<\(level.rawValue)>" : timestamp() + " " + program + ": "
            _ = StandardStreams.write(Printable.text(beginning + line) + "\n", to: STDERR_FILENO)
        }
    }

    private static func timestamp() -> String {
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

// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent
import Synchronization

extension Logger {
    /// Writes lines to standard error, with the time of day unless a journal adds that itself.
    ///
    /// - Parameter program: the program's name.
    static func toStandardError(of program: String, level: Level) -> Logger {
        let isForJournal = getenv("JOURNAL_STREAM") != nil
        let isStuck = Atomic(false)
        return Logger(level: level) { level, line in
            // From this a journal takes the importance of a line. See sd-daemon(3).
            let beginning = isForJournal ? "<\(level.rawValue)>" : timestamp() + " " + program + ": "
            // A reader that has stopped reading must not stop the agent, and is waited for only once.
            let limit = Duration.milliseconds(isStuck.load(ordering: .relaxed) ? 0 : 100)
            let text = Printable.text(beginning + line) + "\n"
            let result = StandardStreams.write(text, to: STDERR_FILENO, within: limit)
            isStuck.store(result == .gaveUp, ordering: .relaxed)
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

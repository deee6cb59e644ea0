// SPDX-License-Identifier: Apache-2.0

package import NotifyCoordinator
import NotifyCore

/// What the sources have found and the agent has not yet processed: only the newest fact of each source.
///
/// However fast facts come, the agent is called at most fifty times a second, spends at most a tenth of its time on
/// them, and keeps at most one fact of each source in memory. The first fact after a pause is passed on immediately.
package final class FactBoard: Sendable {
    private struct Contents {
        var news: [String: SourceNews] = [:]
        /// Whether the agent has been notified, or will be when the pause is over.
        var isAnnounced = false
        /// The earliest time for the agent to check again, in nanoseconds of the monotonic clock.
        var nextLook = Int64.min
    }

    /// The minimum time between two checks by the agent, in nanoseconds.
    static let pause: Int64 = 20_000_000

    private let contents = Monitor(Contents())
    /// Makes the agent check, now or at a time of the monotonic clock.
    private let announce: @Sendable (Int64?) -> Void

    /// - Parameter announce: called on the threads of the sources, with a time if the agent has just checked.
    package init(announce: @escaping @Sendable (Int64?) -> Void) {
        self.announce = announce
    }

    package func post(_ source: String, _ fact: Fact) {
        post(source) { news in
            news.fact = fact
            news.count += 1
        }
    }

    package func post(_ source: String, _ condition: SourceCondition) {
        post(source) { news in
            news.condition = condition
            // Its last fact may no longer be true.
            if condition != .live { news.fact = nil }
        }
    }

    private func post(_ source: String, _ change: (inout SourceNews) -> Void) {
        let (isFirst, moment): (Bool, Int64?) = contents.withLock { contents in
            change(&contents.news[source, default: SourceNews()])
            guard !contents.isAnnounced else { return (false, nil) }
            contents.isAnnounced = true
            return (true, MonotonicTime.now.nanoseconds < contents.nextLook ? contents.nextLook : nil)
        }
        if isFirst { announce(moment) }
    }

    /// The agent has processed what it took.
    ///
    /// - Parameter cost: how long that took, in nanoseconds.
    package func rest(after cost: Int64) {
        contents.withLock { contents in
            contents.nextLook = max(contents.nextLook, MonotonicTime.now.nanoseconds + 9 * cost)
        }
    }

    /// Takes everything.
    package func take() -> [String: SourceNews] {
        contents.withLock { contents in
            contents.isAnnounced = false
            contents.nextLook = MonotonicTime.now.nanoseconds + FactBoard.pause
            defer { contents.news = [:] }
            return contents.news
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCoordinator
import NotifyCore

/// What the sources have found and the agent has not yet processed: only the newest fact of each source.
///
/// However fast facts come, the agent looks at them fifty times a second at most, spends at most a tenth of its time on
/// them, and keeps at most one fact of each source in memory. Looks that it has not used add up to five, which may follow
/// each other at once: a desktop moves the focus in several steps, and what gets it should not wait.
package final class FactBoard {
    private var news: [String: SourceNews] = [:]
    /// Whether the agent has been notified, or will be when the pause is over.
    private var isAnnounced = false
    private var pace = Pace()
    /// Makes the agent look, now or at a time of the monotonic clock.
    private let announce: (Int64?) -> Void

    /// - Parameter announce: called with a time if the agent has looked too often.
    package init(announce: @escaping (Int64?) -> Void) { self.announce = announce }

    /// Has a loop look.
    init(on loop: EventLoop, _ work: @escaping () -> Void) {
        announce = { time in
            if let time { _ = loop.at(MonotonicTime(nanoseconds: time), work) } else { loop.soon(work) }
        }
    }

    /// - Returns: false if the report is not one that a later one replaces.
    @discardableResult
    package func post(_ source: String, _ report: SourceReport) -> Bool {
        var entry = news[source] ?? SourceNews()
        switch report {
        case .found: return false
        case .fact(let fact, let count):
            entry.fact = fact
            entry.count += count
        case .condition(let condition):
            entry.condition = condition
            // Its last fact may no longer be true.
            if condition != .live { entry.fact = nil }
        }
        news[source] = entry
        announceOnce()
        return true
    }

    private func announceOnce() {
        guard !isAnnounced else { return }
        isAnnounced = true
        announce(pace.due)
    }

    /// Nothing that a source has reported counts any more.
    func forget(_ source: String) { news[source] = nil }

    /// Takes everything.
    package func take() -> [String: SourceNews] {
        isAnnounced = false
        pace.pay(Pace.pause)
        defer { news = [:] }
        return news
    }

    /// Takes everything, and rests the longer, the more processor time it takes to handle that. While others have the
    /// processor nothing is spent.
    package func look(_ handle: ([String: SourceNews]) -> Void) {
        let began = Pace.processorTime
        handle(take())
        pace.pay(max(0, 10 * (Pace.processorTime - began) - Pace.pause))
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyCoordinator
import NotifyCore

/// What the sources have found and the agent has not yet processed: only the newest fact of each source.
///
/// However fast facts come, the agent is called at most fifty times a second, spends at most a tenth of its time on
/// them, and keeps at most one fact of each source in memory. The first fact after a pause is passed on immediately.
package final class FactBoard {
    /// The minimum time between two checks by the agent, in nanoseconds.
    static let pause: Int64 = 20_000_000

    private var news: [String: SourceNews] = [:]
    /// Whether the agent has been notified, or will be when the pause is over.
    private var isAnnounced = false
    /// The earliest time for the agent to check again, in nanoseconds of the monotonic clock.
    private var nextLook = Int64.min
    /// Makes the agent check, now or at a time of the monotonic clock.
    private let announce: (FactBoard, Int64?) -> Void

    /// - Parameter announce: called with a time if the agent has just checked.
    package init(announce: @escaping (Int64?) -> Void) { self.announce = { _, time in announce(time) } }

    /// Has a loop check.
    init(on loop: EventLoop, check: @escaping (FactBoard) -> Void) {
        announce = { board, time in
            let work = { check(board) }
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
        announce(self, MonotonicTime.now.nanoseconds < nextLook ? nextLook : nil)
    }

    /// The agent has processed what it took.
    ///
    /// - Parameter cost: how long that took, in nanoseconds.
    package func rest(after cost: Int64) { nextLook = max(nextLook, MonotonicTime.now.nanoseconds + 9 * cost) }

    /// What a source has reported no longer counts.
    func forget(_ source: String) { news[source] = nil }

    /// Takes everything.
    package func take() -> [String: SourceNews] {
        isAnnounced = false
        nextLook = MonotonicTime.now.nanoseconds + FactBoard.pause
        defer { news = [:] }
        return news
    }
}

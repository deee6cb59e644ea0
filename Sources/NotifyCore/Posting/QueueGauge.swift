// SPDX-License-Identifier: Apache-2.0

/// How much waits in dbus-broker for programs that read, and how far a poster may therefore go.
///
/// For an answer the bus walks through all that waits: 10,000 messages, 20 MB, took it 1 ms. So the more waits, and the
/// longer the bus takes to answer since it is short of time itself, the longer it is until the next look.
struct QueueGauge {
    /// How many posts may be under way without an answer: at first, and when queues are too long; and otherwise.
    static let windows = 64...256
    /// The least time between two looks, and what each million bytes that wait make it, in milliseconds.
    private static let interval: Int64 = 5
    /// Posters wait while queues take more than this part of what a user may have: 33 MB of the 263 of a session bus, 16,000
    /// short posts. Waiting is the exception: the bus then sleeps until an observer reads, and writes 16 posts to it, so
    /// that on a busy machine the queues get shorter at a third of the usual pace.
    private static let part = 8
    /// Nobody waits for a queue that has not got shorter in so many milliseconds and looks: a program that is stopped does
    /// not read, and may never.
    private static let patience: (milliseconds: Int64, looks: Int) = (500, 20)

    /// A queue as it was seen last.
    private struct Seen {
        var bytes: Int
        /// When it began to be there, or was seen to be shorter than before, and how often it was not since.
        var progress: MonotonicTime
        var vainLooks = 0
    }

    /// Whether the bus tells.
    private(set) var isOpen: Bool
    /// Whether posters have to wait.
    private(set) var isTooHigh = false
    /// How many posts may be under way without an answer.
    private(set) var window: Int
    private var lookTime: MonotonicTime?
    private var nextTime: MonotonicTime?
    private var isLooking = false
    private var seen: [String: Seen] = [:]

    /// - Parameter isOpen: whether it is worth trying.
    init(isOpen: Bool = false) {
        self.isOpen = isOpen
        window = isOpen ? QueueGauge.windows.lowerBound : QueueGauge.windows.upperBound
    }

    /// Whether the next question may be a look.
    var mayLook: Bool { isOpen && !isLooking && (nextTime.map { $0 <= .now } ?? true) }
    /// When to look though nothing is posted.
    var nextLook: MonotonicTime? { isTooHigh && !isLooking ? nextTime : nil }
    var wantsAnotherLook: Bool { isTooHigh && mayLook }

    mutating func noteLook(_ now: MonotonicTime) {
        isLooking = true
        lookTime = now
    }

    /// - Parameter queues: nil if the bus did not tell.
    mutating func take(_ queues: BrokerQueues?, now: MonotonicTime) {
        isLooking = false
        guard let queues else {
            self = QueueGauge()
            return
        }
        let all = queues.queues.reduce(0) { $0 + $1.bytes }
        let response = lookTime.map { (now.nanoseconds - $0.nanoseconds) / 1_000_000 } ?? 0
        nextTime = now + max(QueueGauge.interval, Int64(all / 1_000_000), response)
        look(at: queues.queues, now)
        // Of the user for whom it is most, in parts of what may be there.
        var load = 0.0
        for (user, limit) in queues.limits {
            let waiting = queues.queues.reduce(0) { sum, queue in
                sum + (queue.user == user && !isStanding(queue.name, now) ? queue.bytes : 0)
            }
            load = max(load, Double(waiting * QueueGauge.part) / Double(max(limit, 1)))
        }
        isTooHigh = load > 1
        if isTooHigh {
            window = QueueGauge.windows.lowerBound
        } else if load < 0.5 {
            window = min(2 * window, QueueGauge.windows.upperBound)
        }
    }

    private mutating func look(at queues: [BrokerQueues.Queue], _ now: MonotonicTime) {
        let before = seen
        seen.removeAll(keepingCapacity: true)
        for queue in queues {
            if var known = before[queue.name], queue.bytes >= known.bytes {
                known.bytes = queue.bytes
                known.vainLooks += 1
                seen[queue.name] = known
            } else {
                seen[queue.name] = Seen(bytes: queue.bytes, progress: now)
            }
        }
    }

    /// Whether a queue waits for a program that does not read.
    private func isStanding(_ name: String, _ now: MonotonicTime) -> Bool {
        guard let queue = seen[name] else { return false }
        let patience = QueueGauge.patience
        return queue.vainLooks >= patience.looks && queue.progress + patience.milliseconds <= now
    }
}

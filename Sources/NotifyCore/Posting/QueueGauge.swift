// SPDX-License-Identifier: Apache-2.0

/// How much dbus-broker has queued for programs that read, and so how far ahead a poster may get.
///
/// To answer, the bus counts all its match rules and all that is queued: 40,000 rules took it 5.8 ms, 10,000 messages, 20
/// MB, 1 ms. So the more is queued, and the longer an overloaded bus takes to reply, the later the next check. While
/// queues are short, checks take at most a tenth of the time that the bus is in use.
struct QueueGauge {
    /// How many posts may be in flight without a reply: initially and while queues are too long; and otherwise.
    static let windows = 64...256
    /// The minimum time between two checks, and how much each million queued bytes adds to it, in milliseconds.
    private static let interval: Int64 = 5
    /// Posters wait while queues take more than this share of a user's quota, or more than this many bytes in all and
    /// for each queue. A short post takes 2,000, and a window of 256 is on its way anyway. Waiting should be the
    /// exception: the bus then sleeps until an observer reads, and writes it 16 posts, so on a busy machine the queues
    /// shrink at a third of the usual rate.
    private static let part = 8
    private static let most = (all: 4_000_000, each: 1_000_000)
    /// Nobody waits for a queue that has not shrunk in this many milliseconds and checks: a stopped program does not
    /// read, and may never do so.
    private static let timeLimit: (milliseconds: Int64, looks: Int) = (500, 20)
    /// How long the bus is in use for posts between two checks while queues are short, as a multiple of what the last
    /// check cost it.
    private static let ratio: Int64 = 9

    /// A queue as last seen.
    private struct Seen {
        var bytes: Int
        /// When it first appeared or was last seen to shrink, and in how many checks it has not shrunk since.
        var progress: MonotonicTime
        var vainLooks = 0
    }

    /// Whether the bus answers.
    private(set) var isOpen: Bool
    /// Whether posters have to wait.
    private(set) var isTooHigh = false
    /// How many posts may be in flight without a reply.
    private(set) var window: Int
    private var lookTime: MonotonicTime?
    private var nextTime: MonotonicTime?
    private var isLooking = false
    /// For how many nanoseconds the bus is to be in use before the next check.
    private var owed: Int64 = 0
    private var seen: [String: Seen] = [:]

    /// - Parameter isOpen: whether it is worth trying.
    init(isOpen: Bool = false) {
        self.isOpen = isOpen
        window = isOpen ? QueueGauge.windows.lowerBound : QueueGauge.windows.upperBound
    }

    /// Whether the next question may be a check.
    var mayLook: Bool { isOpen && !isLooking && owed <= 0 && (nextTime.map { $0 <= .now } ?? true) }
    /// When to check although nothing is posted.
    var nextLook: MonotonicTime? { isTooHigh && !isLooking ? nextTime : nil }
    var wantsAnotherLook: Bool { isTooHigh && mayLook }

    mutating func noteLook(_ now: MonotonicTime) {
        isLooking = true
        lookTime = now
    }

    /// Notes for how long an answer was awaited, and so the bus in use.
    mutating func noteUse(nanoseconds: Int64) {
        owed = max(owed - nanoseconds, 0)
    }

    /// - Parameter queues: nil if the bus refused.
    mutating func take(_ queues: BrokerQueues?, now: MonotonicTime) {
        isLooking = false
        guard let queues else {
            self = QueueGauge()
            return
        }
        let all = queues.queues.reduce(0) { $0 + $1.bytes }
        let response = lookTime.map { now.nanoseconds - $0.nanoseconds } ?? 0
        nextTime = now + max(QueueGauge.interval, Int64(all / 1_000_000), response / 1_000_000)
        look(at: queues.queues, now)
        // For the user with the highest share of the quota.
        var load = 0.0
        for (user, limit) in queues.limits {
            var (bytes, mayTake) = (0, QueueGauge.most.all)
            for queue in queues.queues where queue.user == user && !isStanding(queue.name, now) {
                bytes += queue.bytes
                mayTake += QueueGauge.most.each
            }
            load = max(load, Double(bytes) / Double(max(min(limit / QueueGauge.part, mayTake), 1)))
        }
        isTooHigh = load > 1
        if isTooHigh {
            window = QueueGauge.windows.lowerBound
        } else if load < 0.5 {
            // When queues have grown, checks come as soon as they may.
            owed = QueueGauge.ratio * min(queues.greatestCost, response)
            window = QueueGauge.windows.upperBound
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

    /// Whether a queue belongs to a program that does not read.
    private func isStanding(_ name: String, _ now: MonotonicTime) -> Bool {
        guard let queue = seen[name] else { return false }
        let timeLimit = QueueGauge.timeLimit
        return queue.vainLooks >= timeLimit.looks && queue.progress + timeLimit.milliseconds <= now
    }
}

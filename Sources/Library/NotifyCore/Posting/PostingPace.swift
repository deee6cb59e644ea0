// SPDX-License-Identifier: Apache-2.0

/// How far a poster is ahead of the bus, and whether it may continue.
///
/// dbus-broker reads posts faster than it writes them to observers, and queues the rest in memory: it reads 2 kB from
/// each poster in turn, a dozen posts, and writes 16 to each observer, and only if the observer has read something
/// since. Two posters are enough to outrun every observer, until the user's quota is used up and the bus disconnects a
/// program. So on dbus-broker a poster asks the bus a question after each `interval` posts, and has at most a window of
/// 256 posts in flight that no reply covers; the others wait in the outbox. dbus-daemon needs nothing of the kind: 4
/// posters × 20,000 posts to 20 observers made it grow by less than 1 MB.
///
/// A reply only says that the bus has routed the posts, not that observers have them. So from time to time the question is
/// how much is queued for whom (`QueueGauge`), and posting continues if that is not too much.
struct PostingPace {
    /// How many posts are written between two questions.
    static let interval = 64

    /// What the bus is asked.
    enum Question {
        /// Anything that it answers in order.
        case anything
        /// How much is queued for observers.
        case queues
    }

    private struct Asked {
        let question: Question
        let serial: UInt32
        /// How many posts it covers.
        let sent: Int
        let time: MonotonicTime
    }

    /// How many posts were written to the connection, and how many of them a reply covers.
    private var sent = 0
    private var answered = 0
    private var questions: [Asked] = []
    private var lastAnswer = MonotonicTime(nanoseconds: 0)
    private var gauge = QueueGauge()
    private var lastAsked = 0

    /// Whether posts wait for replies at all.
    private var isNeeded = false

    /// Whether the next post has to wait.
    var isFull: Bool { isNeeded && (sent &- answered >= gauge.window || gauge.isTooHigh) }
    /// Whether it is time for a question.
    var wantsQuestion: Bool { isNeeded && (sent &- lastAsked >= PostingPace.interval || gauge.wantsAnotherLook) }
    /// What to ask next.
    var nextQuestion: Question { gauge.mayLook ? .queues : .anything }
    /// When to act even if nothing has arrived.
    var deadline: MonotonicTime? { isNeeded ? gauge.nextLook : nil }

    init() {}

    /// - Parameters:
    ///   - welcome: the reply of the bus to Hello. dbus-broker gives all of its own messages the serial 4294967295;
    ///     dbus-daemon counts.
    ///   - mayLook: whether the bus may be asked how much is queued.
    init(welcome: BusMessage, mayLook: Bool) {
        isNeeded = welcome.serial == .max
        gauge = QueueGauge(isOpen: mayLook)
    }

    /// Stops posts from waiting for replies: the program is about to exit, and the queue must be written.
    mutating func lift() {
        isNeeded = false
    }

    /// Whether a reply covers every post.
    var isSettled: Bool { sent == answered }
    /// Whether a question covers every post.
    var isAsked: Bool { sent == lastAsked }

    mutating func notePost() {
        sent &+= 1
    }

    /// Notes a question about all posts so far.
    mutating func note(_ question: Question, _ serial: UInt32) {
        let now = MonotonicTime.now
        questions.append(Asked(question: question, serial: serial, sent: sent, time: now))
        lastAsked = sent
        if question == .queues { gauge.noteLook(now) }
    }

    /// Handles the reply to a question.
    ///
    /// - Returns: whether it was one.
    mutating func take(_ answer: BusMessage) -> Bool {
        guard let index = questions.firstIndex(where: { $0.serial == answer.replySerial }) else { return false }
        let asked = questions.remove(at: index)
        let now = MonotonicTime.now
        switch asked.question {
        case .anything: gauge.noteUse(nanoseconds: now.nanoseconds - max(asked.time, lastAnswer).nanoseconds)
        case .queues: gauge.take(BrokerQueues(answer), now: now)
        }
        lastAnswer = now
        answered = max(answered, asked.sent)
        return true
    }
}

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
    /// Posting does not wait for a queue that has not shrunk in this many milliseconds and checks: a stopped program
    /// does not read, and may never do so.
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

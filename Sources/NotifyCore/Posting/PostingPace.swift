// SPDX-License-Identifier: Apache-2.0

/// How far a poster is ahead of the bus, and whether it may continue.
///
/// dbus-broker reads posts faster than it writes them to observers, and queues the rest in memory: it reads 2 kB from
/// each poster in turn, a dozen posts, and writes 16 to each observer, and only if the observer has read something
/// since. Two posters are enough to outrun every observer, until the user's quota is used up and the bus disconnects
/// somebody. So on dbus-broker a poster asks the bus a question after each `interval` posts, and has at most a window
/// of 256 posts in flight that no reply covers; the others wait in the outbox. dbus-daemon needs nothing of the kind: 4
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

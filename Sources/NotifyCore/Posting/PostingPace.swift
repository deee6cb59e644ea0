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
/// A reply only says that the bus has routed the posts, not that observers have them. So in a storm the poster listens:
/// it subscribes to every post. The replies then wait behind these in the queue that the bus keeps for the poster,
/// which is as long as that of any observer that reads promptly. And each question is asked twice in a row before its
/// posts count: the poster then proceeds at half the rate at which the bus can write, so an observer that has fallen
/// behind waiting for a processor catches up.
///
/// Observers that keep waiting for a processor do not. So from time to time the question is how much is queued for whom
/// (`QueueGauge`), and posting continues if that is not too much.
struct PostingPace {
    /// How many posts are written between two questions.
    static let interval = 64
    /// Questions that follow each other within this many nanoseconds are a storm, from the fourth on: 12,800 posts a
    /// second.
    private static let stormInterval: Int64 = 5_000_000
    private static let stormLength = 4
    /// After how many milliseconds without a post the poster stops listening.
    static let rest: Int64 = 100

    /// The match rule by which a poster listens.
    static var rule: String { MatchRule.everything[0] }

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
        /// Whether a reply to this makes them count.
        let isLast: Bool
    }

    /// The meaning of a reply.
    enum Answer { case none, taken, mustAskAgain(sent: Int) }

    /// How many posts were written to the connection, and how many of them a reply covers.
    private var sent = 0
    private var answered = 0
    private var questions: [Asked] = []
    private var gauge = QueueGauge()
    private var lastAsked = 0
    /// When the last question was asked, in nanoseconds of the monotonic clock, and how many in a row followed soon
    /// after the previous one.
    private var lastAskedTime: Int64 = 0
    private var quickQuestions = 0
    /// Whether the socket was full: the bus does not read as fast as posts are made.
    private var wasSocketFull = false
    /// Whether the poster is subscribed to all posts.
    private(set) var isListening = false
    /// When to stop listening, unless something is posted before then.
    private(set) var listensUntil: MonotonicTime?

    /// Whether posts wait for replies at all.
    private var isNeeded = false

    /// Whether the next post has to wait.
    var isFull: Bool { isNeeded && (sent &- answered >= gauge.window || gauge.isTooHigh) }
    /// Whether it is time for a question.
    var wantsQuestion: Bool { isNeeded && (sent &- lastAsked >= PostingPace.interval || gauge.wantsAnotherLook) }
    /// What to ask next.
    var nextQuestion: Question { gauge.mayLook ? .queues : .anything }
    /// When to act even if nothing has arrived.
    var deadline: MonotonicTime? { MonotonicTime.earlier(listensUntil, isNeeded ? gauge.nextLook : nil) }

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
        quickQuestions = now.nanoseconds - lastAskedTime < PostingPace.stormInterval ? quickQuestions + 1 : 0
        lastAskedTime = now.nanoseconds
        questions.append(Asked(question: question, serial: serial, sent: sent, isLast: !isListening))
        lastAsked = sent
        if question == .queues { gauge.noteLook(now) }
    }

    /// Notes that the question was asked again.
    mutating func noteRepeatedQuestion(_ serial: UInt32, sent: Int) {
        questions.append(Asked(question: .anything, serial: serial, sent: sent, isLast: true))
    }

    /// Handles the reply to a question.
    mutating func take(_ answer: BusMessage) -> Answer {
        guard let index = questions.firstIndex(where: { $0.serial == answer.replySerial }) else { return .none }
        let asked = questions.remove(at: index)
        if asked.question == .queues { gauge.take(BrokerQueues(answer), now: .now) }
        guard asked.isLast else { return .mustAskAgain(sent: asked.sent) }
        answered = max(answered, asked.sent)
        return .taken
    }

    /// Whether there are so many posts that the poster has to listen.
    var isStorm: Bool { quickQuestions >= PostingPace.stormLength || wasSocketFull }

    /// The socket is full. It holds some 200 posts of short names, so this may happen before the window is used up.
    mutating func noteFullSocket() {
        wasSocketFull = isNeeded
    }

    /// - Returns: whether to subscribe to all posts now.
    mutating func beginListening() -> Bool {
        listensUntil = nil
        defer { isListening = true }
        return !isListening
    }

    /// Makes listening end some time after the last post.
    ///
    /// - Parameter hasPosts: whether posts are queued.
    /// - Returns: whether to unsubscribe from all posts.
    mutating func rest(hasPosts: Bool, now: MonotonicTime) -> Bool {
        guard isListening else { return false }
        guard !hasPosts, let time = listensUntil else {
            listensUntil = hasPosts ? nil : now + PostingPace.rest
            return false
        }
        guard time <= now else { return false }
        isListening = false
        listensUntil = nil
        quickQuestions = 0
        wasSocketFull = false
        return true
    }
}

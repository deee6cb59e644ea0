// SPDX-License-Identifier: Apache-2.0

/// How far a poster is ahead of the bus, and whether it may go on.
///
/// dbus-broker reads posts faster than it writes them to observers, and keeps the rest in memory: it reads 2 kB from each
/// poster in turn, a dozen posts, and writes 16 to each observer, and those only when the observer has read something since.
/// Two posters are enough to outrun every observer, until it has used what it allows a user and disconnects somebody. So on
/// dbus-broker a poster asks the bus a question after each `interval` posts, and has a window of posts, 256 at the most, under
/// way that no answer covers; the others wait in the outbox. dbus-daemon needs nothing of the kind: 4 posters × 20,000 posts to
/// 20 observers made it grow by less than 1 MB.
///
/// An answer alone says that the bus has routed the posts, and not that observers have them. So in a storm the poster
/// listens: it has the bus send it every post. The answers then wait behind these in the queue that the bus keeps for the
/// poster, which is as long as that of any observer that reads at once. And each question is asked twice, one after the
/// other, before its posts count: what the poster waits for is then half of what the bus can write, and an observer that has
/// fallen behind, because it had to wait for a processor, catches up.
///
/// Observers that wait for a processor again and again do not. So every now and then the question is how much waits for
/// whom (`QueueGauge`), and posting goes on when it is not too much.
struct PostingPace {
    /// How many posts are written between two questions.
    static let interval = 64
    /// Questions that follow each other within so many nanoseconds are a storm, from the fourth on: 12,800 posts a second.
    private static let stormInterval: Int64 = 5_000_000
    private static let stormLength = 4
    /// For how long nothing must be posted until the poster listens no more, in milliseconds.
    static let rest: Int64 = 100

    /// The rule for what a poster listens to.
    static var rule: String { MatchRule.everything[0] }

    /// What the bus is asked.
    enum Question {
        /// Anything that it answers in its turn.
        case anything
        /// How much waits for observers.
        case queues
    }

    private struct Asked {
        let question: Question
        let serial: UInt32
        /// How many posts it covers.
        let sent: Int
        /// Whether an answer to this makes them count.
        let isLast: Bool
    }

    /// What an answer means.
    enum Answer { case none, taken, mustAskAgain(sent: Int) }

    /// How many posts were written to the connection, and how many of them an answer covers.
    private var sent = 0
    private var answered = 0
    private var questions: [Asked] = []
    private var gauge = QueueGauge()
    private var lastAsked = 0
    /// When the last question was asked, in nanoseconds of the monotonic clock, and how many in a row were asked soon after
    /// the one before.
    private var lastAskedTime: Int64 = 0
    private var quickQuestions = 0
    /// Whether the socket was full: the bus does not read as fast as is posted.
    private var wasSocketFull = false
    /// Whether the bus was asked for all posts.
    private(set) var isListening = false
    /// When to stop listening, unless something is posted before.
    private(set) var listensUntil: MonotonicTime?

    /// Whether posts wait for answers at all.
    private var isNeeded = false

    /// Whether the next post has to wait.
    var isFull: Bool { isNeeded && (sent &- answered >= gauge.window || gauge.isTooHigh) }
    /// Whether it is time for a question.
    var wantsQuestion: Bool { isNeeded && (sent &- lastAsked >= PostingPace.interval || gauge.wantsAnotherLook) }
    /// What to ask next.
    var nextQuestion: Question { gauge.mayLook ? .queues : .anything }
    /// When something is to be done though nothing has come.
    var deadline: MonotonicTime? { MonotonicTime.earlier(listensUntil, isNeeded ? gauge.nextLook : nil) }

    init() {}

    /// - Parameters:
    ///   - welcome: the answer of the bus to Hello. dbus-broker gives every message of its own the serial 4294967295;
    ///     dbus-daemon counts.
    ///   - mayLook: whether the bus may be asked how much waits.
    init(welcome: BusMessage, mayLook: Bool) {
        isNeeded = welcome.serial == .max
        gauge = QueueGauge(isOpen: mayLook)
    }

    /// Has posts no longer wait for answers: the program is about to end, and what waits must be written.
    mutating func lift() {
        isNeeded = false
    }

    /// Whether an answer covers every post.
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

    /// Takes the answer to a question.
    mutating func take(_ answer: BusMessage) -> Answer {
        guard let index = questions.firstIndex(where: { $0.serial == answer.replySerial }) else { return .none }
        let asked = questions.remove(at: index)
        if asked.question == .queues { gauge.take(BrokerQueues(answer), now: .now) }
        guard asked.isLast else { return .mustAskAgain(sent: asked.sent) }
        answered = max(answered, asked.sent)
        return .taken
    }

    /// Whether so much is posted that the poster has to listen.
    var isStorm: Bool { quickQuestions >= PostingPace.stormLength || wasSocketFull }

    /// The socket takes no more. It holds some 200 posts of short names, so this may come before the window is used up.
    mutating func noteFullSocket() {
        wasSocketFull = isNeeded
    }

    /// - Returns: whether the bus is to be asked for all posts now.
    mutating func beginListening() -> Bool {
        listensUntil = nil
        defer { isListening = true }
        return !isListening
    }

    /// Sees to it that listening ends some time after the last post.
    ///
    /// - Parameter hasPosts: whether posts wait.
    /// - Returns: whether the bus is to send no more posts.
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

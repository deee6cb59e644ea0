// SPDX-License-Identifier: Apache-2.0

/// The subject of a match rule, a name or a prefix, and its observers.
///
/// `@unchecked Sendable`: the variables are touched only with the lock of the owning `Registry` (or `ProcessHub`) held,
/// except `generation`, which only the reading thread touches.
final class Topic: @unchecked Sendable {
    enum Key: Equatable {
        case name(NotifyName)
        case prefix(NamePrefix)

        func matches(_ name: NotifyName) -> Bool {
            switch self {
            case .name(let wanted): wanted == name
            case .prefix(let prefix): prefix.begins(name)
            }
        }
    }

    enum State {
        /// The match rules have been sent to the bus.
        case adding
        /// The bus has them: every later post is heard.
        case active
        /// They were on a bus that went away, and will be made again.
        case lost
        case failed(NotifyBusError)
    }

    let key: Key
    private(set) var audience = Audience()
    var state = State.adding {
        didSet { noteChange() }
    }
    /// Whether somebody is waiting for a bus that is missing.
    var waitsForBus = false
    /// Whether posts of it were heard on some connection, so that some may have been missed since.
    var wasActive = false
    /// Whether it must be live before the center reports that the bus is back.
    var isOwed = false
    /// For how many of the rules the bus has yet to reply.
    var unanswered = 0
    /// The connection on which the rules were sent.
    var generation = 0

    /// Changes the observers. They are moved out meanwhile, so that each access to the variable is instantaneous, which
    /// the compiler sees: a delivery reads it without a check for exclusive access.
    func changeAudience(_ change: (inout Audience) -> Void) {
        var audience = audience
        self.audience = Audience()
        change(&audience)
        self.audience = audience
    }

    /// Who is to be told when the bus has answered, and where to say that something has changed, if there are any.
    private var notices: [Registry.Notice] = []
    private var changes: TopicChanges?

    func add(_ notice: Registry.Notice, _ changes: TopicChanges) {
        notices.append(notice)
        self.changes = changes
    }

    func takeNotices() -> [Registry.Notice] {
        defer { notices = [] }
        return notices
    }

    func forgetNotice(of observer: Observer) {
        notices.removeAll { $0.observer === observer }
    }

    /// Has the notices checked.
    func noteChange() {
        if !notices.isEmpty { changes?.topics.append(self) }
    }

    init(_ key: Key) { self.key = key }

    /// The name, if the topic is one.
    var name: NotifyName? {
        if case .name(let name) = key { name } else { nil }
    }

    /// Made when they are sent, which is seldom: they are longer than the name.
    var rules: [String] {
        switch key {
        case .name(let name): [MatchRule.name(name)]
        case .prefix(let prefix): MatchRule.prefix(prefix.string)
        }
    }

    /// How many rules it has.
    var ruleCount: Int {
        switch key {
        case .name: 1
        case .prefix: rules.count
        }
    }
}

/// The observers of a post.
struct Audience {
    private(set) var observers: [Observer] = []
    /// How many of them are run by clients, and how many ignore what their own center posts.
    private(set) var clientCount = 0
    private(set) var ignoringCount = 0

    var isEmpty: Bool { observers.isEmpty }
    /// Whether callbacks are to be run on the center's thread.
    var hasCallbacks: Bool { clientCount < observers.count }

    mutating func add(_ observer: Observer) {
        observers.append(observer)
        count(observer, 1)
    }

    mutating func remove(_ observer: Observer) {
        guard let index = observers.firstIndex(where: { $0 === observer }) else { return }
        observers.remove(at: index)
        count(observer, -1)
    }

    func contains(_ observer: Observer) -> Bool {
        observers.contains { $0 === observer }
    }

    /// Without those that ignore what their own center posts.
    var withoutIgnoring: Audience {
        var rest = Audience()
        for observer in observers where !observer.ignoresOwnPosts { rest.add(observer) }
        return rest
    }

    private mutating func count(_ observer: Observer, _ change: Int) {
        if observer.isClient { clientCount += change }
        if observer.ignoresOwnPosts { ignoringCount += change }
    }
}

// SPDX-License-Identifier: Apache-2.0

/// Topics, looked up by the bytes of a name.
struct TopicTable {
    /// By the hash of the wire format: the first name with that hash.
    private var names = ObjectTable<Topic>()
    /// The others, by a hash that outsiders can't predict. Only names that were constructed to collide get here.
    private var collisions: [Int: [Topic]] = [:]
    private(set) var prefixes: [Topic] = []
    private(set) var nameCount = 0

    /// Adds an observer to a topic, creating the topic if it is new.
    mutating func add(_ observer: Observer, to key: Topic.Key) -> (topic: Topic, isNew: Bool) {
        if let topic = find(key) {
            topic.changeAudience { $0.add(observer) }
            return (topic, false)
        }
        let topic = Topic(key)
        topic.changeAudience { $0.add(observer) }
        switch key {
        case .name(let name):
            if names[name.storage.hash] == nil {
                names.set(topic, for: name.storage.hash)
            } else {
                collisions[TopicTable.seededHash(of: name), default: []].append(topic)
            }
            nameCount += 1
        case .prefix:
            prefixes.append(topic)
        }
        return (topic, true)
    }

    /// Removes an observer from a topic, and the topic from the table when it was the last.
    ///
    /// - Returns: whether the topic is gone.
    mutating func remove(_ observer: Observer, from topic: Topic) -> Bool {
        topic.changeAudience { $0.remove(observer) }
        guard topic.audience.isEmpty else { return false }
        switch topic.key {
        case .name(let name):
            if names[name.storage.hash] === topic {
                names.remove(name.storage.hash)
            } else {
                let hash = TopicTable.seededHash(of: name)
                guard var bucket = collisions.removeValue(forKey: hash) else { return false }
                let before = bucket.count
                bucket.removeAll { $0 === topic }
                if !bucket.isEmpty { collisions[hash] = bucket }
                guard bucket.count < before else { return false }
            }
            nameCount -= 1
            return true
        case .prefix:
            let before = prefixes.count
            prefixes.removeAll { $0 === topic }
            return prefixes.count < before
        }
    }

    func topic(named bytes: UnsafeRawBufferPointer, hash: UInt64) -> Topic? {
        if let first = names[hash], first.name?.hasBytes(bytes) == true { return first }
        guard !collisions.isEmpty else { return nil }
        return collisions[NotifyName.seededHash(of: bytes)]?.first { $0.name?.hasBytes(bytes) == true }
    }

    private static func seededHash(of name: NotifyName) -> Int {
        var hasher = Hasher()
        name.hash(into: &hasher)
        return hasher.finalize()
    }

    /// All observers of a name. One that observes it twice over appears once.
    func audience(of name: NotifyName) -> Audience {
        let exact = topic(of: name)?.audience ?? Audience()
        return prefixes.isEmpty ? exact : addingPrefixObservers(of: name, to: exact)
    }

    func addingPrefixObservers(of name: NotifyName, to exact: Audience) -> Audience {
        var all = exact
        for topic in prefixes where topic.key.matches(name) {
            for observer in topic.audience.observers where !all.contains(observer) { all.add(observer) }
        }
        return all
    }

    func forEach(_ body: (Topic) -> Void) {
        names.forEach(body)
        for bucket in collisions.values { bucket.forEach(body) }
        prefixes.forEach(body)
    }

    func find(_ key: Topic.Key) -> Topic? {
        switch key {
        case .name(let name): topic(of: name)
        case .prefix: prefixes.first { $0.key == key }
        }
    }

    private func topic(of name: NotifyName) -> Topic? {
        if let first = names[name.storage.hash], first.name == name { return first }
        if collisions.isEmpty { return nil }
        return collisions[TopicTable.seededHash(of: name)]?.first { $0.name == name }
    }
}

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
    /// Whether an observer is waiting for a bus that is missing.
    var waitsForBus = false
    /// Whether posts of it were heard on some connection, so that some may have been missed since.
    var wasActive = false
    /// Whether it must be live before the center reports that the bus is back.
    var isOwed = false
    /// On how many connections it was registered that were lost before the bus had answered.
    var losses = 0
    /// For how many of the rules the bus has yet to reply.
    var unanswered = 0
    /// Whether it has refused one.
    var wasRefused = false
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

    /// The notices to give when the bus has answered, and where to say that something has changed, if there are any.
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
    /// For how many of them the center's thread runs no callback, how many of those are listeners, and how many ignore what
    /// their own center posts.
    private(set) var clientCount = 0
    private(set) var listenerCount = 0
    private(set) var ignoringCount = 0

    var isEmpty: Bool { observers.isEmpty }
    /// Whether it matters to an observer who has posted.
    var mindsSender: Bool { ignoringCount > 0 || listenerCount > 0 }
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
        if case .listener = observer.runner { listenerCount += change }
        if observer.ignoresOwnPosts { ignoringCount += change }
    }
}

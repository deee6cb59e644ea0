// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What the relay hears for whom, and what is waiting for each program.
///
/// A value that knows no bus: it is told what happens, and answers which names to hear and what to pass on.
package struct RelayTable: Hashable, Sendable {
    package struct Post: Hashable, Sendable, Coalescing {
        package let name: NotifyName
        /// The unique name of the poster's connection; empty if this stands for the posts of several.
        package var sender: String
        /// What it takes up while it waits, in bytes; 0 if something else keeps its name in memory.
        var cost = 0

        package init(_ name: NotifyName, from sender: String) {
            self.name = name
            self.sender = sender
        }

        package mutating func merge(_ other: Post) {
            if sender != other.sender { sender = "" }
        }
    }

    /// What waits until a client has read so many posts.
    struct Waiter: Hashable, Sendable {
        let count: UInt64
        let number: Int
    }

    struct Client: Hashable, Sendable {
        /// The process that the connection belongs to, which is the sandbox's proxy.
        let process: ProcessID
        let owner: Owner
        /// How many posts its owner had lost before it came.
        let droppedBefore: UInt64
        var subjects = Subjects()
        /// By what its names are heard.
        var cover = NameCover()
        /// Whether the relay hears its names.
        var isHearing: Bool
        /// Whether the relay may pass on what it hears.
        var isPassing: Bool
        var queue = CoalescingQueue<Post>()
        /// The last batch, until the client has read it.
        var unanswered: [Post] = []
        /// Whether these are dropped if the client does not accept them, as it has been in the background since.
        var isRefusalFinal = false
        /// How many posts the client has read.
        var readCount: UInt64 = 0
        /// In this order; there is one for each count.
        var waiters: [Waiter] = []
        /// The size of the waiting names that nothing else keeps in memory.
        var bytes = 0
        /// How many posts were dropped because there was no room.
        var dropped: UInt64 = 0
    }

    /// Whose clients share turns and memory.
    private struct Group: Hashable, Sendable {
        var count = 0
        /// Which clients hear each subject.
        var listeners = SubjectIndex<Set<String>>()
        var line = PostLine()
        /// The size of the names that wait for its clients and that nothing else keeps in memory.
        var bytes = 0
        /// How many posts were dropped because there was no room in its line.
        var dropped: UInt64 = 0
    }

    /// What is next for an owner.
    package enum Step: Equatable {
        /// A post has been queued for these.
        case queued(Set<String>)
        /// Work that has followed posts is to be done.
        case follower(Int)
    }

    /// How much memory the waiting names of one owner's connections may take up, in bytes. Names observed in full don't
    /// count, because their number is limited anyway.
    private let room: Int
    private var clients: [String: Client] = [:]
    private var groups: [Owner: Group] = [:]
    /// Which owners' clients hear each subject.
    private var audience = SubjectIndex<Set<Owner>>()
    /// The size of the names that wait, in all lines and for all clients, and of the clients.
    private var memory = MemoryUse()
    /// The owners with something in their lines, in the order of their turns.
    private var turns = Fifo<Owner>()
    /// How many clients need each rule, or needed it until another one that replaces it is in place.
    private var rules = SubjectIndex<Int>()

    package init(room: Int = Quotas().pendingBytes) { self.room = room }

    package var clientNames: [String] { Array(clients.keys) }
    package var count: Int { clients.count }
    package var ruleCount: Int { rules.count }
    package func contains(_ name: String) -> Bool { clients[name] != nil }
    package func droppedCount(of name: String) -> UInt64 {
        guard let client = clients[name] else { return 0 }
        return client.dropped + (groups[client.owner]?.dropped ?? 0) - client.droppedBefore
    }
    package func waitingCount(of name: String) -> Int { clients[name]?.queue.count ?? 0 }
    package func process(of name: String) -> ProcessID? { clients[name]?.process }

    // MARK: - Who observes what

    /// - Returns: false if the client is already known; then nothing changes.
    package mutating func enter(_ name: String, of process: ProcessID, _ owner: Owner, in state: LifecycleState) -> Bool
    {
        guard clients[name] == nil else { return false }
        groups[owner, default: Group()].count += 1
        var client = Client(
            process: process,
            owner: owner,
            droppedBefore: groups[owner]?.dropped ?? 0,
            isHearing: state != .background,
            isPassing: state == .foreground
        )
        if state == .suspended { client.queue.keepEachOnce(true) }
        clients[name] = client
        memory.bytes += RelayTable.clientSize
        return true
    }

    /// - Returns: what must be heard from now on, what the client did not observe before, and what is to be passed to `release`
    ///   once the rules for the first are in place, as these replace it.
    package mutating func add(
        _ subjects: Subjects,
        to name: String
    ) -> (heard: Subjects, added: Subjects, replaced: Subjects) {
        guard let index = clients.index(forKey: name) else { return (Subjects(), Subjects(), Subjects()) }
        // In its place: a client may add to 65,536 names one by one.
        var new = Subjects()
        for one in subjects.names where clients.values[index].subjects.names.insert(one).inserted {
            new.names.insert(one)
        }
        for one in subjects.prefixes where clients.values[index].subjects.prefixes.insert(one).inserted {
            new.prefixes.insert(one)
        }
        let change = clients.values[index].cover.add(new.names)
        guard clients.values[index].isHearing else { return (Subjects(), new, Subjects()) }
        listen(name, to: new)
        return (insert(change.asked, new.prefixes), new, change.given)
    }

    /// Rules that are no longer needed.
    ///
    /// - Returns: what need not be heard any more.
    package mutating func release(_ replaced: Subjects) -> Subjects {
        replaced.isEmpty ? Subjects() : rules.remove(replaced)
    }

    /// - Returns: what need not be heard any more, the waiters that need not wait any longer, and what must be heard
    ///   before `replaced` is passed to `release`.
    package mutating func remove(
        _ subjects: Subjects,
        from name: String
    ) -> (unheard: Subjects, waiters: [Int], heard: Subjects, replaced: Subjects) {
        guard let index = clients.index(forKey: name) else { return (Subjects(), [], Subjects(), Subjects()) }
        var old = Subjects()
        for one in subjects.names where clients.values[index].subjects.names.remove(one) != nil {
            old.names.insert(one)
        }
        for one in subjects.prefixes where clients.values[index].subjects.prefixes.remove(one) != nil {
            old.prefixes.insert(one)
        }
        guard !old.isEmpty else { return (Subjects(), [], Subjects(), Subjects()) }
        let isHearing = clients.values[index].isHearing
        let rest = clients.values[index].subjects.names
        let cover = clients.values[index].cover.remove(old.names, leaving: rest)
        change(name) { $0.dropUnwanted() }
        let due = takeWaiters(of: name)
        guard isHearing else { return (Subjects(), due, Subjects(), Subjects()) }
        ignore(old, name)
        guard !cover.asked.isEmpty else { return (withdraw(cover.given, old.prefixes), due, Subjects(), Subjects()) }
        return (withdraw(Subjects(), old.prefixes), due, rules.insert(cover.asked), cover.given)
    }

    /// The bus does not let the relay hear what a client is to hear: the client no longer hears anything.
    ///
    /// - Returns: what need not be heard any more.
    package mutating func stopHearing(_ name: String) -> (unheard: Subjects, waiters: [Int]) {
        guard let client = clients[name], client.isHearing else { return (Subjects(), []) }
        clients[name]?.isHearing = false
        ignore(client.subjects, name)
        return (withdraw(client.cover.rules, client.subjects.prefixes), [])
    }

    /// The bus does not let the relay hear something, which it does only if it accepts no rule any more: a client
    /// that needs it no longer observes what it stands for. If it is one of the common prefixes, that is every name of the
    /// client.
    ///
    /// - Returns: these clients, what need not be heard any more, and the waiters that need not wait any longer.
    package mutating func refuse(_ rule: Subjects) -> (clients: [String], unheard: Subjects, waiters: [Int]) {
        var (losers, unheard, due): ([String], Subjects, [Int]) = ([], Subjects(), [])
        for (name, client) in clients where client.isHearing && client.needs(rule) {
            let isNarrow = client.cover.rules.prefixes.isEmpty
            let concernsCover = !client.cover.rules.intersection(rule).isEmpty
            let names =
                isNarrow || !concernsCover ? client.subjects.names.intersection(rule.names) : client.subjects.names
            unheard.formUnion(rules.remove(client.cover.rules.intersection(rule)))
            clients[name]?.cover.drop(rule)
            let change = remove(Subjects(names: names, prefixes: rule.prefixes), from: name)
            unheard.formUnion(change.unheard)
            losers.append(name)
            due += change.waiters
        }
        return (losers.sorted(), unheard, due)
    }

    /// Those of these that some client needs.
    package func needed(among subjects: Subjects) -> Subjects {
        Subjects(
            names: subjects.names.filter { rules[$0] != nil },
            prefixes: subjects.prefixes.filter { rules[$0] != nil }
        )
    }

    /// - Returns: what need not be heard any more, and the waiters for something that will never come.
    package mutating func forget(_ name: String) -> (unheard: Subjects, waiters: [Int]) {
        guard let client = clients[name] else { return (Subjects(), []) }
        var unheard = Subjects()
        if client.isHearing {
            ignore(client.subjects, name)
            unheard = withdraw(client.cover.rules, client.subjects.prefixes)
        }
        groups[client.owner]?.bytes -= client.bytes
        memory.bytes -= client.bytes + RelayTable.clientSize
        groups[client.owner]?.count -= 1
        clients[name] = nil
        forgetIfIdle(client.owner)
        return (unheard, client.waiters.map(\.number))
    }

    package func subjects(of name: String) -> Subjects? { clients[name]?.subjects }

    // MARK: - States

    /// Prepares for a state before the client is told: from now on posts are passed on, kept, or no longer heard.
    ///
    /// - Returns: what must be heard from now on, and what need not be heard any more.
    package mutating func prepare(_ state: LifecycleState, of name: String) -> (heard: Subjects, unheard: Subjects) {
        guard let client = clients[name] else { return (Subjects(), Subjects()) }
        if state != .foreground { clients[name]?.isPassing = false }
        change(name) {
            $0.queue.keepEachOnce(state == .suspended)
            $0.recount()
        }
        clients[name]?.isHearing = state != .background
        guard state == .background else {
            if client.isHearing { return (Subjects(), Subjects()) }
            listen(name, to: client.subjects)
            return (insert(client.cover.rules, client.subjects.prefixes), Subjects())
        }
        change(name) {
            $0.queue.removeAll()
            $0.isRefusalFinal = !$0.unanswered.isEmpty
            $0.recount()
        }
        guard client.isHearing else { return (Subjects(), Subjects()) }
        ignore(client.subjects, name)
        return (Subjects(), withdraw(client.cover.rules, client.subjects.prefixes))
    }

    /// The client has confirmed its state.
    package mutating func confirm(_ state: LifecycleState, of name: String) {
        clients[name]?.isPassing = state == .foreground
    }

    // MARK: - Posts

    /// A post has arrived. It waits for the turn of each owner whose clients are to hear it.
    package mutating func posted(_ post: Post) {
        var post = post
        post.cost = RelayTable.cost(post.name)
        let exact = audience[post.name] ?? []
        // The number of names observed in full is limited: there is room for each once.
        for owner in exact { append(post, for: owner, room: 2 * room) }
        guard audience.hasPrefixes else { return }
        var others: Set<Owner> = []
        audience.forEachPrefix(of: post.name) { _, owners in
            if others.isEmpty { others = owners } else { others.formUnion(owners) }
        }
        for owner in others where !exact.contains(owner) { append(post, for: owner, room: room) }
    }

    private mutating func append(_ post: Post, for owner: Owner, room: Int) {
        guard let before = groups[owner]?.line.bytes else { return }
        if groups[owner]?.line.isEmpty == true { turns.append(owner) }
        if groups[owner]?.line.append(post, room: room) == false { groups[owner]?.dropped += 1 }
        memory.bytes += (groups[owner]?.line.bytes ?? before) - before
    }

    /// Something concerns a client, and is not to overtake the posts that have arrived: `next` returns its number when it is
    /// its turn.
    ///
    /// - Returns: false if there are none, so that it is to be done now.
    package mutating func follow(_ number: Int, for name: String) -> Bool {
        guard let owner = clients[name]?.owner else { return false }
        return groups[owner]?.line.append(follower: number) ?? false
    }

    /// Whether `next` returns something.
    package var hasWork: Bool { !turns.isEmpty }

    /// Whether no line holds anything any more, and so much less waits that releasing memory is worthwhile.
    package var hasShrunk: Bool { !hasWork && memory.hasShrunk }

    package mutating func memoryIsGivenBack() { memory.isGivenBack() }

    /// Takes what has waited longest for the owner whose turn it is, and passes a post on to the clients that are to
    /// hear it.
    package mutating func next() -> Step? {
        while let owner = turns.popFirst() {
            let item = groups[owner]?.line.popFirst()
            if groups[owner]?.line.isEmpty == false { turns.append(owner) }
            defer { forgetIfIdle(owner) }
            switch item {
            case nil: continue
            case .follower(let number): return .follower(number)
            case .post(let post):
                memory.bytes -= post.cost
                return .queued(queue(post, for: owner))
            }
        }
        return nil
    }

    /// - Returns: whom it is for.
    private mutating func queue(_ post: Post, for owner: Owner) -> Set<String> {
        guard let listeners = groups[owner]?.listeners else { return [] }
        let exact = listeners[post.name] ?? []
        for name in exact { append(post, for: name, isKept: true) }
        guard listeners.hasPrefixes else { return exact }
        var all = exact
        listeners.forEachPrefix(of: post.name) { _, names in
            if all.isEmpty { all = names } else { all.formUnion(names) }
        }
        for name in all where !exact.contains(name) { append(post, for: name, isKept: false) }
        return all
    }

    /// Queues names for one client that were posted before the relay could pass them on.
    package mutating func keep(_ found: [NotifyName], for name: String) {
        // The posts that come for a client in the background are dropped.
        guard clients[name]?.isHearing == true else { return }
        for one in found { append(Post(one, from: ""), for: name, isKept: false) }
    }

    private mutating func append(_ post: Post, for name: String, isKept: Bool) {
        guard let owner = clients[name]?.owner else { return }
        // The number of names observed in full is limited. Where there is no room for others, they are coalesced.
        var post = post
        post.cost = isKept ? 0 : RelayTable.cost(post.name)
        let hasRoom = isKept || (groups[owner]?.bytes ?? 0) + post.cost <= room
        change(name) { client in
            switch client.queue.enqueue(post, mayGrow: hasRoom) {
            case .queued: client.bytes += post.cost
            case .coalesced: break
            case .full: client.dropped += 1
            }
        }
    }

    /// The names of the posts that clients are not known to have read, for those that observe prefixes, in the order of the
    /// posts.
    ///
    /// - Parameter limit: of how many posts for each owner's clients.
    package func unreadNames(limit: Int = PendingNames.limit) -> [String: [NotifyName]] {
        var unread: [String: [NotifyName]] = [:]
        var counts: [Owner: Int] = [:]
        func add(_ name: NotifyName, for client: String, of owner: Owner) {
            guard counts[owner, default: 0] < limit else { return }
            counts[owner, default: 0] += 1
            unread[client, default: []].append(name)
        }
        for (name, client) in clients where client.isHearing && !client.subjects.prefixes.isEmpty {
            for post in client.unanswered + client.queue.all { add(post.name, for: name, of: client.owner) }
        }
        for (owner, group) in groups where group.listeners.hasPrefixes {
            for name in group.line.names where counts[owner, default: 0] < limit {
                group.listeners.forEachPrefix(of: name) { _, clients in
                    for client in clients { add(name, for: client, of: owner) }
                }
            }
        }
        return unread
    }

    /// Whether there is a batch for a client.
    package func hasBatch(for name: String) -> Bool {
        guard let client = clients[name] else { return false }
        return client.isPassing && client.unanswered.isEmpty && !client.queue.isEmpty
    }

    /// The next batch for a client; nil if there is none, or the client has yet to read the last one.
    package mutating func takeBatch(for name: String, limit: Int) -> [Post]? {
        guard hasBatch(for: name) else { return nil }
        return change(name) { client in
            client.unanswered = client.queue.take(limit)
            client.bytes -= client.unanswered.reduce(0) { $0 + $1.cost }
            return client.unanswered
        }
    }

    /// The client has read the last batch.
    ///
    /// - Returns: the waiters for that.
    package mutating func batchIsRead(by name: String) -> [Int] {
        change(name) { client in
            client.readCount += UInt64(client.unanswered.count)
            (client.unanswered, client.isRefusalFinal) = ([], false)
        }
        return takeWaiters(of: name)
    }

    /// The client has not accepted the last batch, which goes back into the queue.
    package mutating func batchWasRefused(by name: String) {
        change(name) { client in
            if !client.isRefusalFinal { client.queue.putBack(client.unanswered) }
            (client.unanswered, client.isRefusalFinal) = ([], false)
            client.recount()
            client.dropUnwanted()
        }
    }

    // MARK: - Waiting

    /// Waits until the client has read everything heard so far.
    ///
    /// - Returns: the number under which it waits: `number`, or that of others who wait for the same. Nil if there is
    ///   nothing to wait for.
    package mutating func wait(_ number: Int, for name: String) -> Int? {
        guard let client = clients[name], client.isPassing else { return nil }
        let ahead = client.unanswered.count + client.queue.count
        guard ahead > 0 else { return nil }
        let count = client.readCount + UInt64(ahead)
        if let last = client.waiters.last, last.count == count { return last.number }
        clients[name]?.waiters.append(Waiter(count: count, number: number))
        return number
    }

    /// The waiters that need not wait any longer.
    package mutating func takeWaiters(of name: String) -> [Int] {
        guard let client = clients[name], !client.waiters.isEmpty else { return [] }
        let due = client.isPassing ? client.waiters.prefix { $0.count <= client.readCount } : client.waiters[...]
        clients[name]?.waiters.removeFirst(due.count)
        return due.map(\.number)
    }

    // MARK: - Inside

    // A client's prefix may be among those of its names: then it counts twice.

    private mutating func insert(_ cover: Subjects, _ prefixes: Set<NamePrefix>) -> Subjects {
        let new = rules.insert(cover)
        return prefixes.isEmpty ? new : new.union(rules.insert(Subjects(prefixes: prefixes)))
    }

    private mutating func withdraw(_ cover: Subjects, _ prefixes: Set<NamePrefix>) -> Subjects {
        let old = rules.remove(cover)
        return prefixes.isEmpty ? old : old.union(rules.remove(Subjects(prefixes: prefixes)))
    }

    /// About what a client takes up besides its names.
    private static let clientSize = 2_048

    private static func cost(_ name: NotifyName) -> Int { name.string.utf8.count + 64 }

    @discardableResult
    private mutating func change<Result>(_ name: String, _ change: (inout Client) -> Result) -> Result? {
        guard let index = clients.index(forKey: name) else { return nil }
        let before = clients.values[index].bytes
        let result = change(&clients.values[index])
        let after = clients.values[index].bytes
        if after != before {
            groups[clients.values[index].owner]?.bytes += after - before
            memory.bytes += after - before
        }
        return result
    }

    /// A client hears these from now on.
    private mutating func listen(_ name: String, to subjects: Subjects) {
        guard let owner = clients[name]?.owner, let new = groups[owner]?.listeners.insert(name, for: subjects) else {
            return
        }
        _ = audience.insert(owner, for: new)
    }

    /// A client no longer hears these.
    private mutating func ignore(_ subjects: Subjects, _ name: String) {
        guard let owner = clients[name]?.owner, let old = groups[owner]?.listeners.remove(name, for: subjects) else {
            return
        }
        _ = audience.remove(owner, for: old)
    }

    /// Work that has followed posts of an owner that has left must still be done.
    private mutating func forgetIfIdle(_ owner: Owner) {
        if let group = groups[owner], group.count == 0, group.line.isEmpty { groups[owner] = nil }
    }
}

extension RelayTable.Client {
    /// Whether one of these is heard for it.
    fileprivate func needs(_ rules: Subjects) -> Bool {
        !cover.rules.intersection(rules).isEmpty || !subjects.prefixes.isDisjoint(with: rules.prefixes)
    }

    /// Adds up what waits, after more than the front of the queue has changed.
    fileprivate mutating func recount() { bytes = queue.all.reduce(0) { $0 + $1.cost } }

    /// Drops the waiting posts of what the client no longer observes.
    fileprivate mutating func dropUnwanted() {
        guard !queue.isEmpty else { return }
        let names = subjects.names
        var prefixes = PrefixIndex<Void>()
        for prefix in subjects.prefixes { prefixes[prefix] = () }
        let first = readCount + UInt64(unanswered.count)
        // Waiters wait for that much less.
        var kept: [UInt64] = [0]
        kept.reserveCapacity(waiters.isEmpty ? 1 : queue.count + 1)
        let counts = !waiters.isEmpty
        queue.keep { post in
            var isWanted = names.contains(post.name)
            if !isWanted { prefixes.forEachPrefix(of: post.name) { _, _ in isWanted = true } }
            if counts { kept.append(kept[kept.count - 1] + (isWanted ? 1 : 0)) }
            return isWanted
        }
        recount()
        guard counts else { return }
        var rest: [RelayTable.Waiter] = []
        for one in waiters {
            let count = one.count <= first ? one.count : first + kept[min(Int(one.count - first), kept.count - 1)]
            rest.append(RelayTable.Waiter(count: count, number: one.number))
        }
        waiters = rest
    }
}

/// What sandboxed programs may hear through the relay: everything, unless the configuration limits their application.
package struct RelayRules: Equatable, Sendable {
    /// Whether there is a relay if a program needs one.
    package var isOpen = true
    /// The prefixes of the names that an application may hear, by its id.
    package var limits: [String: Set<NamePrefix>] = [:]

    package init() {}

    /// Why an application may not observe all of this, as a sentence; nil if it may.
    package func refusal(of subjects: Subjects, to application: String) -> String? {
        if let name = subjects.names.first(where: { !SystemEvent.reachesSandboxes($0) }) {
            return "Programs in a sandbox may not hear '\(name)'."
        }
        guard let allowed = limits[application] else { return nil }
        func isAllowed(_ text: String) -> Bool { allowed.contains { text.utf8.starts(with: $0.string.utf8) } }
        let forbidden =
            subjects.names.first { !isAllowed($0.string) }?.string
            ?? subjects.prefixes.first { !isAllowed($0.string) }.map { $0.string + "*" }
        return forbidden.map { "The agent's configuration does not let \(application) hear '\($0)'." }
    }
}

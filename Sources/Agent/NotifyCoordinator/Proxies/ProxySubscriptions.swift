// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// How much is done at once for those whose names are subscribed to.
package struct ProxyParts: Hashable, Sendable {
    /// How many rules are requested from the bus in one request, and in all pending requests.
    package var request = 256
    package var allowance = 1_024
    /// How many names are processed before others get their turn.
    package var turn = 4_096

    package init() {}
}

/// The names to which the agent subscribes on behalf of connections that don't listen: its subscribers.
///
/// It puts them under its own rules and removes them a few at a time: a subscriber with ten thousand names does not keep
/// the others waiting. Users take turns, and so do the subscribers of a user.
struct ProxySubscriptions: Hashable {
    enum Effect: Hashable {
        case subscribe(Ticket, names: [NotifyName], prefixes: [NamePrefix])
        case unsubscribe(Ticket?, names: [NotifyName], prefixes: [NamePrefix])
        /// Everything requested for a subscriber is subscribed to, or this prevented it.
        case subscribed(ConnectionID, failure: String?)
    }

    /// The pending work for one subscriber.
    private struct Work: Hashable {
        let user: UInt32
        /// What is to be subscribed to in the end.
        var wanted = Subjects()
        var subscribed = Subjects()
        /// What must be checked, because one of the two has changed.
        var names: [NotifyName] = []
        var prefixes: [NamePrefix] = []
        /// Whether `subscribed` is waited for.
        var isAwaited = false
        /// Whether the bus must have been asked something before that.
        var synchronizes = false
        var isQueued = false
        /// The bus has yet to process these.
        var ticket: Ticket?

        var isDone: Bool { names.isEmpty && prefixes.isEmpty }
        var isOver: Bool { isDone && ticket == nil && !isAwaited && subscribed.isEmpty }
    }

    private struct Request: Hashable {
        var names: [NotifyName] = []
        var prefixes: [NamePrefix] = []
        /// The subscriber that waits for it.
        var waiting: Set<ConnectionID> = []
        var size: Int { names.count + prefixes.count }
    }

    private let parts: ProxyParts
    private(set) var table = ProxyTable()
    private var rules: PrefixRules
    private var works: [ConnectionID: Work] = [:]
    /// Subscribers with work.
    private var turns = Turns<UInt32, ConnectionID>()
    private var requests: [Ticket: Request] = [:]
    private var underWay = 0
    private var lastTicket: UInt64 = 0
    private var effects: [Effect] = []

    init(prefixRules: Int = PrefixRules.limit, parts: ProxyParts = ProxyParts()) {
        rules = PrefixRules(limit: prefixRules)
        self.parts = parts
    }

    /// Whether all of these are subscribed to, or about to be.
    func subscribes(_ subjects: Subjects, for id: ConnectionID) -> Bool {
        subjects.subtracting(works[id]?.wanted ?? Subjects()).isEmpty
    }

    func subscribed(for id: ConnectionID) -> Subjects { works[id]?.subscribed ?? Subjects() }

    /// Whether there is no work left.
    var isAtRest: Bool { turns.isEmpty && requests.isEmpty }

    // MARK: - Requests

    /// Subscribes to names for a subscriber, unless that is done already; ends in `subscribed`.
    ///
    /// - Parameter synchronizes: whether the bus is asked something in any case: whatever had been sent to the agent
    ///   has then arrived.
    mutating func subscribe(
        _ subjects: Subjects,
        for id: ConnectionID,
        of user: UInt32,
        synchronizes: Bool = false
    ) -> [Effect] {
        var work = works.removeValue(forKey: id) ?? Work(user: user)
        let missing = subjects.subtracting(work.subscribed)
        if work.wanted.isEmpty { work.wanted = subjects } else { work.wanted.formUnion(subjects) }
        work.names += missing.names
        work.prefixes += missing.prefixes
        work.isAwaited = true
        if synchronizes { work.synchronizes = true }
        works[id] = work
        return proceed(with: id)
    }

    /// Subscribes to names for a connection that takes the place of another one of its user; ends in `subscribed`.
    ///
    /// Names that both observe change hands here and now, and none of their rules is touched. Were they given up for
    /// one and requested for the other a part at a time, a name could lose its rule in one part and have it again only
    /// some parts later.
    mutating func subscribe(
        _ subjects: Subjects,
        for id: ConnectionID,
        of user: UInt32,
        inPlaceOf previous: ConnectionID
    ) -> [Effect] {
        guard var work = works.removeValue(forKey: previous) else { return subscribe(subjects, for: id, of: user) }
        table.replace(previous, by: id, work.subscribed)
        if let ticket = work.ticket, requests[ticket]?.waiting.remove(previous) != nil {
            requests[ticket]?.waiting.insert(id)
        }
        let changed = [subjects.subtracting(work.subscribed), work.subscribed.subtracting(subjects)]
        work.wanted = subjects
        work.names = changed.flatMap(\.names)
        work.prefixes = changed.flatMap(\.prefixes)
        // Their bits were those of the previous one.
        work.names += work.subscribed.names.filter {
            subjects.names.contains($0) && table.rule(of: $0) == ProxyTable.Rule.none
        }
        work.isAwaited = true
        // Its turn, if it has one, is the previous one's.
        work.isQueued = false
        works[id] = work
        return proceed(with: id)
    }

    /// Ensures that posts of its names are heard again, as their bits have been cleared. Ends in `subscribed`.
    mutating func resubscribe(_ id: ConnectionID) -> [Effect] {
        guard let work = works[id] else { return [.subscribed(id, failure: nil)] }
        works[id]?.names += work.subscribed.names.filter { table.rule(of: $0) == ProxyTable.Rule.none }
        works[id]?.isAwaited = true
        return proceed(with: id)
    }

    mutating func unsubscribe(_ subjects: Subjects, for id: ConnectionID) -> [Effect] {
        guard var work = works.removeValue(forKey: id) else { return [] }
        work.wanted.subtract(subjects)
        let surplus = subjects.intersection(work.subscribed)
        work.names += surplus.names
        work.prefixes += surplus.prefixes
        works[id] = work
        return proceed(with: id)
    }

    mutating func unsubscribeAll(for id: ConnectionID) -> [Effect] {
        guard let work = works[id] else { return [] }
        works[id]?.wanted = Subjects()
        works[id]?.names = Array(work.subscribed.names)
        works[id]?.prefixes = Array(work.subscribed.prefixes)
        return proceed(with: id)
    }

    /// The subscribers for whom a post of the name is kept.
    func subscribers(of name: NotifyName) -> (byName: [ConnectionID], byPrefix: [(NamePrefix, ConnectionID)]) {
        table.subscribers(of: name)
    }

    /// Another post of the name would be news for no subscriber: its rule is removed from the bus until a subscriber's
    /// bit is cleared, and half a million posts of it cost nothing.
    mutating func dropRule(of name: NotifyName) -> [Effect] {
        guard table.rule(of: name) == .stands else { return [] }
        table.set(.none, of: name)
        return [.unsubscribe(nil, names: [name], prefixes: [])]
    }

    /// The bus has processed a request.
    mutating func rulesAreSet(_ ticket: Ticket, failure: String?) -> [Effect] {
        guard let request = requests.removeValue(forKey: ticket) else {
            assertionFailure("The bus has answered a request that was not made, or was answered before.")
            return []
        }
        underWay -= request.size
        for id in request.waiting { works[id]?.ticket = nil }
        if let failure {
            for id in refused(request, ticket).union(request.waiting).sorted() { fail(id, failure) }
        } else {
            for name in request.names where table.rule(of: name) == .asked(ticket) { table.set(.stands, of: name) }
            for id in request.waiting.sorted() { enqueue(id) }
        }
        var (superfluous, isTooWide) = rules.confirmed(ticket, table)
        if isTooWide { superfluous += replaceWideRule() }
        if !superfluous.isEmpty { effects.append(.unsubscribe(nil, names: [], prefixes: superfluous)) }
        pump()
        if works.isEmpty { table.compact() }
        return takeEffects()
    }

    /// - Returns: the prefixes whose rules are no longer needed.
    private mutating func replaceWideRule() -> [NamePrefix] {
        let ticket = nextTicket()
        let (asked, superfluous) = rules.replaceWide(table, ticket)
        if !asked.isEmpty {
            requests[ticket] = Request(prefixes: asked)
            underWay += asked.count
            effects.append(.subscribe(ticket, names: [], prefixes: asked))
        }
        return superfluous
    }

    /// - Returns: the subscribers whose names are not heard now.
    private mutating func refused(_ request: Request, _ ticket: Ticket) -> Set<ConnectionID> {
        var losers: Set<ConnectionID> = []
        for name in request.names where table.rule(of: name) == .asked(ticket) {
            for subscriber in table.drop(name) {
                works[subscriber]?.subscribed.names.remove(name)
                losers.insert(subscriber)
            }
        }
        for prefix in rules.refused(ticket, table) {
            for subscriber in table.drop(prefix: prefix) {
                works[subscriber]?.subscribed.prefixes.remove(prefix)
                losers.insert(subscriber)
            }
        }
        return losers
    }

    /// Abandons what was requested for a subscriber. Existing subscriptions stay, unless they were given up meanwhile.
    private mutating func fail(_ id: ConnectionID, _ failure: String) {
        guard let work = works[id] else { return }
        let surplus = work.subscribed.subtracting(work.wanted)
        works[id]?.wanted = work.wanted.intersection(work.subscribed)
        works[id]?.names = Array(surplus.names)
        works[id]?.prefixes = Array(surplus.prefixes)
        works[id]?.isAwaited = false
        if work.isAwaited { effects.append(.subscribed(id, failure: failure)) }
        if surplus.isEmpty { forgetIfOver(id) } else { enqueue(id) }
    }

    // MARK: - Turns

    private mutating func proceed(with id: ConnectionID) -> [Effect] {
        enqueue(id)
        pump()
        return takeEffects()
    }

    private mutating func takeEffects() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    private mutating func enqueue(_ id: ConnectionID) {
        guard let work = works[id], !work.isQueued, work.ticket == nil else { return }
        works[id]?.isQueued = true
        turns.append(id, of: work.user)
    }

    /// The next subscriber of the user whose turn it is.
    private mutating func next() -> ConnectionID? {
        let id = turns.next()
        if let id { works[id]?.isQueued = false }
        return id
    }

    private mutating func pump() {
        var looks = 0
        while underWay < parts.allowance, !turns.isEmpty {
            guard looks < parts.turn else { return pause() }
            guard let id = next() else { return }
            looks += advance(id) + 1
        }
    }

    /// Continues when the bus has come this far; others get their turn meanwhile.
    private mutating func pause() {
        guard !requests.values.contains(where: { $0.size == 0 && $0.waiting.isEmpty }) else { return }
        let ticket = nextTicket()
        requests[ticket] = Request()
        effects.append(.subscribe(ticket, names: [], prefixes: []))
    }

    private mutating func nextTicket() -> Ticket {
        lastTicket += 1
        return Ticket(lastTicket)
    }

    /// Does the next part of a subscriber's work.
    ///
    /// - Returns: how many names it has processed.
    private mutating func advance(_ id: ConnectionID) -> Int {
        guard var work = works.removeValue(forKey: id) else { return 0 }
        let ticket = nextTicket()
        var asked = Request(waiting: [id])
        var given = Request()
        var waitsFor: Ticket?
        var looks = 0
        while looks < parts.request, let name = work.names.popLast() {
            looks += 1
            if work.wanted.names.contains(name) {
                let rule = work.subscribed.names.insert(name).inserted ? table.add(id, name) : table.rule(of: name)
                switch rule {
                case nil, ProxyTable.Rule.none?:
                    table.set(.asked(ticket), of: name)
                    asked.names.append(name)
                case .asked(let other): waitsFor = max(waitsFor ?? other, other)
                case .stands: break
                }
            } else if work.subscribed.names.remove(name) != nil, let rule = table.remove(id, name), rule != .none {
                given.names.append(name)
            }
        }
        while looks < parts.request, let prefix = work.prefixes.popLast() {
            looks += 1
            if work.wanted.prefixes.contains(prefix) {
                guard work.subscribed.prefixes.insert(prefix).inserted else { continue }
                let isNew = table.add(id, prefix: prefix)
                switch rules.add(prefix, isNew: isNew, table, ticket) {
                case .ask(let prefixes): asked.prefixes += prefixes
                case .wait(let other): waitsFor = max(waitsFor ?? other, other)
                case .nothing: break
                }
            } else if work.subscribed.prefixes.remove(prefix) != nil, table.remove(id, prefix: prefix) {
                let change = rules.remove(prefix, table, ticket)
                asked.prefixes += change.ask
                given.prefixes += change.release
            }
        }
        works[id] = work
        // Requests in this turn that turned out to be unnecessary cancel out.
        if !asked.prefixes.isEmpty, !given.prefixes.isEmpty {
            let both = Set(asked.prefixes).intersection(given.prefixes)
            asked.prefixes.removeAll(where: both.contains)
            given.prefixes.removeAll(where: both.contains)
        }
        // The bus need not be asked for what has canceled out.
        if asked.prefixes.isEmpty { given.prefixes += rules.confirmed(ticket, table).superfluous }
        send(asked, given, ticket, for: id, after: waitsFor)
        return looks
    }

    private mutating func send(
        _ asked: Request,
        _ given: Request,
        _ ticket: Ticket,
        for id: ConnectionID,
        after other: Ticket?
    ) {
        if given.size > 0 {
            // With a ticket of its own if nothing else shows when the bus has processed it.
            let own = asked.size == 0 && given.size >= parts.request / 2 ? ticket : nil
            effects.append(.unsubscribe(own, names: given.names, prefixes: given.prefixes))
            if own != nil {
                requests[ticket] = Request(waiting: [id])
                works[id]?.ticket = ticket
                return
            }
        }
        if asked.size > 0 || other == nil && works[id]?.isDone == true && works[id]?.synchronizes == true {
            works[id]?.synchronizes = false
            requests[ticket] = asked
            underWay += asked.size
            works[id]?.ticket = ticket
            effects.append(.subscribe(ticket, names: asked.names, prefixes: asked.prefixes))
        } else if let other, requests[other] != nil {
            requests[other]?.waiting.insert(id)
            works[id]?.ticket = other
        } else if works[id]?.isDone == true {
            if works[id]?.isAwaited == true {
                works[id]?.isAwaited = false
                effects.append(.subscribed(id, failure: nil))
            }
            forgetIfOver(id)
        } else {
            enqueue(id)
        }
    }

    private mutating func forgetIfOver(_ id: ConnectionID) {
        if works[id]?.isOver == true { works[id] = nil }
    }
}

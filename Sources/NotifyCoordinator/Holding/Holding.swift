// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Puts names under the agent's own rules and removes them, a few at a time: a holder with ten thousand names does not
/// keep the others waiting. Users take turns, and so do the holders of a user.
struct Holding: Hashable {
    enum Output: Hashable {
        case subscribe(Ticket, names: [NotifyName], prefixes: [NamePrefix])
        case unsubscribe(Ticket?, names: [NotifyName], prefixes: [NamePrefix])
        /// Everything requested for a holder is held, or this prevented it.
        case held(ConnectionID, failure: String?)
    }

    /// How many rules are requested from the bus at once, in one request and in all pending requests.
    static let chunk = 256
    private static let allowance = 1_024
    /// How many names are processed before others get their turn.
    private static let sliceSize = 4_096

    /// The pending work for one holder.
    private struct Work: Hashable {
        let user: UInt32
        /// What is to be held in the end.
        var wanted = Subjects()
        var held = Subjects()
        /// What must be checked, because one of the two has changed.
        var names: [NotifyName] = []
        var prefixes: [NamePrefix] = []
        /// Whether somebody waits for `held`.
        var isAwaited = false
        /// Whether the bus must have been asked something before that.
        var synchronizes = false
        var isQueued = false
        /// The bus has yet to process these.
        var ticket: Ticket?

        var isDone: Bool { names.isEmpty && prefixes.isEmpty }
        var isOver: Bool { isDone && ticket == nil && !isAwaited && held.isEmpty && wanted.isEmpty }
    }

    private struct Request: Hashable {
        var names: [NotifyName] = []
        var prefixes: [NamePrefix] = []
        /// The holder that waits for it.
        var waiting: Set<ConnectionID> = []
        var size: Int { names.count + prefixes.count }
    }

    private(set) var table = HoldTable()
    private var rules: PrefixRules
    private var works: [ConnectionID: Work] = [:]
    /// Holders with work.
    private var turns = Turns<UInt32, ConnectionID>()
    private var requests: [Ticket: Request] = [:]
    private var underWay = 0
    private var lastTicket: UInt64 = 0
    private var outputs: [Output] = []

    init(prefixRules: Int = PrefixRules.limit) { rules = PrefixRules(limit: prefixRules) }

    /// What is held for a holder.
    func held(for id: ConnectionID) -> Subjects { works[id]?.held ?? Subjects() }
    func holdsAnything(for id: ConnectionID) -> Bool { works[id].map { !$0.wanted.isEmpty } ?? false }

    /// Whether there is no work left.
    var isAtRest: Bool { turns.isEmpty && requests.isEmpty }

    mutating func takeOutputs() -> [Output] {
        defer { outputs = [] }
        return outputs
    }

    // MARK: - Requests

    /// Holds names for a holder, unless they are already held; ends in `held`.
    ///
    /// - Parameter synchronizes: whether the bus is asked something in any case: whatever had been sent to the agent has
    ///   then arrived.
    mutating func hold(_ subjects: Subjects, for id: ConnectionID, of user: UInt32, synchronizes: Bool = false) {
        var work = works.removeValue(forKey: id) ?? Work(user: user)
        let missing = subjects.subtracting(work.held)
        if work.wanted.isEmpty { work.wanted = subjects } else { work.wanted.formUnion(subjects) }
        work.names += missing.names
        work.prefixes += missing.prefixes
        work.isAwaited = true
        if synchronizes { work.synchronizes = true }
        works[id] = work
        enqueue(id)
        pump()
    }

    /// Ensures that posts of held names are heard again, as their bits have been cleared. Ends in `held`.
    mutating func resubscribe(_ id: ConnectionID) {
        guard let work = works[id] else { return outputs.append(.held(id, failure: nil)) }
        works[id]?.names += work.held.names.filter { table.rule(of: $0) == HoldTable.Rule.none }
        works[id]?.isAwaited = true
        enqueue(id)
        pump()
    }

    mutating func release(_ subjects: Subjects, for id: ConnectionID) {
        guard var work = works.removeValue(forKey: id) else { return }
        work.wanted.subtract(subjects)
        let surplus = subjects.intersection(work.held)
        work.names += surplus.names
        work.prefixes += surplus.prefixes
        works[id] = work
        enqueue(id)
        pump()
    }

    mutating func releaseAll(for id: ConnectionID) {
        guard let work = works[id] else { return }
        works[id]?.wanted = Subjects()
        works[id]?.names = Array(work.held.names)
        works[id]?.prefixes = Array(work.held.prefixes)
        enqueue(id)
        pump()
    }

    /// The holders for whom a post of the name is kept.
    func holders(of name: NotifyName) -> (byName: [ConnectionID], byPrefix: [(NamePrefix, ConnectionID)]) {
        table.holders(of: name)
    }

    /// Another post of the name would be news for nobody: its rule is removed from the bus until somebody's bit is
    /// cleared, and half a million posts of it cost nothing.
    mutating func unsubscribe(_ name: NotifyName) {
        guard table.rule(of: name) == .stands else { return }
        table.set(.none, of: name)
        outputs.append(.unsubscribe(nil, names: [name], prefixes: []))
    }

    /// The bus has processed a request.
    mutating func rulesAreSet(_ ticket: Ticket, failure: String?) {
        guard let request = requests.removeValue(forKey: ticket) else { return }
        underWay -= request.size
        for id in request.waiting { works[id]?.ticket = nil }
        if let failure {
            for id in refused(request, ticket).union(request.waiting).sorted() { fail(id, failure) }
        } else {
            for name in request.names where table.rule(of: name) == .asked(ticket) { table.set(.stands, of: name) }
            let superfluous = rules.confirmed(ticket)
            if !superfluous.isEmpty { outputs.append(.unsubscribe(nil, names: [], prefixes: superfluous)) }
            for id in request.waiting.sorted() { enqueue(id) }
        }
        pump()
        if works.isEmpty { table.compact() }
    }

    /// - Returns: the holders whose names are not heard now.
    private mutating func refused(_ request: Request, _ ticket: Ticket) -> Set<ConnectionID> {
        var losers: Set<ConnectionID> = []
        for name in request.names where table.rule(of: name) == .asked(ticket) {
            for holder in table.drop(name) {
                works[holder]?.held.names.remove(name)
                losers.insert(holder)
            }
        }
        for prefix in rules.refused(ticket, table) {
            for holder in table.drop(prefix: prefix) {
                works[holder]?.held.prefixes.remove(prefix)
                losers.insert(holder)
            }
        }
        return losers
    }

    /// Abandons what was requested for a holder. What is held stays held.
    private mutating func fail(_ id: ConnectionID, _ failure: String) {
        guard let work = works[id] else { return }
        works[id]?.wanted = work.held
        works[id]?.names = []
        works[id]?.prefixes = []
        works[id]?.isAwaited = false
        if work.isAwaited { outputs.append(.held(id, failure: failure)) }
        forgetIfOver(id)
    }

    // MARK: - Turns

    private mutating func enqueue(_ id: ConnectionID) {
        guard let work = works[id], !work.isQueued, work.ticket == nil else { return }
        works[id]?.isQueued = true
        turns.append(id, of: work.user)
    }

    /// The next holder of the user whose turn it is.
    private mutating func next() -> ConnectionID? {
        let id = turns.next()
        if let id { works[id]?.isQueued = false }
        return id
    }

    private mutating func pump() {
        var looks = 0
        while underWay < Holding.allowance, !turns.isEmpty {
            guard looks < Holding.sliceSize else { return pause() }
            guard let id = next() else { return }
            looks += advance(id) + 1
        }
    }

    /// Continues when the bus has come this far; others get their turn meanwhile.
    private mutating func pause() {
        guard !requests.values.contains(where: { $0.size == 0 && $0.waiting.isEmpty }) else { return }
        let ticket = nextTicket()
        requests[ticket] = Request()
        outputs.append(.subscribe(ticket, names: [], prefixes: []))
    }

    private mutating func nextTicket() -> Ticket {
        lastTicket += 1
        return Ticket(lastTicket)
    }

    /// Does the next part of a holder's work.
    ///
    /// - Returns: how many names it has processed.
    private mutating func advance(_ id: ConnectionID) -> Int {
        guard var work = works.removeValue(forKey: id) else { return 0 }
        let ticket = nextTicket()
        var asked = Request(waiting: [id])
        var given = Request()
        var waitsFor: Ticket?
        var looks = 0
        while looks < Holding.chunk, let name = work.names.popLast() {
            looks += 1
            if work.wanted.names.contains(name) {
                let rule = work.held.names.insert(name).inserted ? table.add(id, name) : table.rule(of: name)
                switch rule {
                case nil, HoldTable.Rule.none?:
                    table.set(.asked(ticket), of: name)
                    asked.names.append(name)
                case .asked(let other): waitsFor = max(waitsFor ?? other, other)
                case .stands: break
                }
            } else if work.held.names.remove(name) != nil, let rule = table.remove(id, name), rule != .none {
                given.names.append(name)
            }
        }
        while looks < Holding.chunk, let prefix = work.prefixes.popLast() {
            looks += 1
            if work.wanted.prefixes.contains(prefix) {
                guard work.held.prefixes.insert(prefix).inserted else { continue }
                let isNew = table.add(id, prefix: prefix)
                switch rules.add(prefix, isNew: isNew, table, ticket) {
                case .ask(let prefixes): asked.prefixes += prefixes
                case .wait(let other): waitsFor = max(waitsFor ?? other, other)
                case .nothing: break
                }
            } else if work.held.prefixes.remove(prefix) != nil, table.remove(id, prefix: prefix) {
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
            let own = asked.size == 0 && given.size >= Holding.chunk / 2 ? ticket : nil
            outputs.append(.unsubscribe(own, names: given.names, prefixes: given.prefixes))
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
            outputs.append(.subscribe(ticket, names: asked.names, prefixes: asked.prefixes))
        } else if let other, requests[other] != nil {
            requests[other]?.waiting.insert(id)
            works[id]?.ticket = other
        } else if works[id]?.isDone == true {
            if works[id]?.isAwaited == true {
                works[id]?.isAwaited = false
                outputs.append(.held(id, failure: nil))
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

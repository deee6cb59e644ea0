// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A model of a D-Bus daemon. It takes one message at a time from a connection's queue, and appends what follows from
/// it to the queues of others, in that order.
struct Bus {
    enum Owner: Hashable {
        case poster(Int)
        case control
        case observer(Int)
        case agent(Int)
    }

    struct Connection {
        let owner: Owner
        let name: String
        /// Whether the bus knows it. Even if not, what is in `inbox` can still be read.
        fileprivate(set) var isOpen = true
        fileprivate(set) var outbox = Queue<ToBus>()
        var inbox = Queue<FromBus>()
        /// How many rules it has for each subject.
        private(set) var rules = SIMD16<Int16>.zero
        /// The names that it hears, a bit for each.
        private(set) var heard: UInt8 = 0
        var hearsForged: Bool { Subject.ordinary.contains { rules[$0] > 0 } }
        var watchesOwner = false
        /// Whether part of the next message has been read.
        var isTorn = false

        mutating func add(rule subject: Int) {
            rules[subject] += 1
            heard |= Subject.masks[subject]
        }

        mutating func remove(rule subject: Int) {
            rules[subject] = max(0, rules[subject] - 1)
            heard = 0
            for subject in 0..<Subject.ruleCount where rules[subject] > 0 { heard |= Subject.masks[subject] }
        }

        /// Whether its program has come to its end, and the bus still knows it.
        var lingers = false
        var isObserver: Bool { if case .observer = owner { true } else { false } }
        /// Which user it belongs to.
        var user: UInt32 { if case .poster(let number) = owner { Post.users[number] } else { 0 } }
    }

    /// A call that the bus has passed on and that has not been answered yet.
    private struct Pending: Hashable {
        let caller: Int
        let serial: Int
        let callee: Int
    }

    struct Starter: Hashable {
        let connection: Int
        let serial: Int
    }

    private(set) var connections: [Connection] = []
    /// The connections that it knows, and those of them whose queue it has to process, in ascending order.
    private var known: [Int] = []
    private(set) var writers: [Int] = []
    private(set) var agent: Int?
    private var pending: [Pending] = []
    /// Those who are waiting for the agent to be started.
    private(set) var starters: [Starter] = []
    /// Whether it has ended, and another has not been started yet.
    private(set) var isAway = false
    /// Which bus it is. It gives out the same names as the one before.
    private(set) var number = 0
    /// The number of its first connection.
    private var first = 0
    /// How many rules it allows each observer.
    var ruleLimit: Int?
    /// Whether the bus can start an agent.
    var startsAgents = false

    init() { connections.reserveCapacity(16) }

    subscript(index: Int) -> Connection {
        get { connections[index] }
        _modify { yield &connections[index] }
    }

    func index(of name: String) -> Int? { known.last { connections[$0].name == name } }

    mutating func connect(_ owner: Owner) -> Int {
        known.append(connections.count)
        connections.append(Connection(owner: owner, name: Bus.name(connections.count - first)))
        return connections.count - 1
    }

    private static let names = (0..<64).map { ":1.\($0)" }
    private static func name(_ number: Int) -> String { number < names.count ? names[number] : ":1.\(number)" }

    /// A program writes a message.
    mutating func write(_ message: consuming ToBus, _ index: Int) {
        if connections[index].isOpen, connections[index].outbox.isEmpty {
            writers.insert(index, at: writers.firstIndex { $0 > index } ?? writers.endIndex)
        }
        connections[index].outbox.append(message)
    }

    /// Whether it has taken everything that a program has written.
    func isIdle(_ index: Int) -> Bool { connections[index].outbox.isEmpty }

    /// Whether a program has something to read, if only that its connection has ended.
    func hasNews(_ index: Int) -> Bool { !connections[index].inbox.isEmpty || !connections[index].isOpen }

    /// What the bus did with a message, if that concerns others.
    enum Outcome {
        case nothing
        case routed(post: Int)
        /// A person's request is on its way to the agent.
        case asked(serial: Int)
        case agentIsToBeStarted
        case closed
    }

    /// Processes the next message of a connection.
    mutating func route(_ index: Int, encodes: Bool) -> Outcome {
        guard connections[index].isOpen, let message = connections[index].outbox.popFirst() else { return .nothing }
        if connections[index].outbox.isEmpty { writers.removeAll { $0 == index } }
        switch message {
        case .addMatch(let subject, let serial):
            if let ruleLimit, connections[index].isObserver, Int(connections[index].rules.wrappedSum()) >= ruleLimit {
                fail(index, serial)
                break
            }
            connections[index].add(rule: subject)
            reply(index, serial)
        case .removeMatch(let subject):
            connections[index].remove(rule: subject)
        case .watchOwner: connections[index].watchesOwner = true
        case .ask(let serial): reply(index, serial)
        case .getOwner(let serial):
            if let agent { reply(index, serial, connections[agent].name) } else { fail(index, serial) }
        case .getUser(let name, let serial):
            // One that posts a name that has an owner stays until observers have asked.
            if let owner = self.index(of: name) ?? connections.lastIndex(where: { $0.name == name && $0.lingers }) {
                reply(index, serial, String(connections[owner].user))
            } else {
                fail(index, serial)
            }
        case .startAgent(let serial):
            guard agent == nil else {
                reply(index, serial)
                break
            }
            guard startsAgents else {
                fail(index, serial)
                break
            }
            starters.append(Starter(connection: index, serial: serial))
            return .agentIsToBeStarted
        case .requestName(let serial): requestName(index, serial)
        case .post(let post, let name, let isForged):
            deliver(post, name, isForged: isForged)
            return .routed(post: post)
        case .hangUp:
            disconnect(index)
            return .closed
        case .send(let name, let message):
            let isPassed = pass(encodes ? message.read : message, from: index, to: name)
            if isPassed, connections[index].owner == .control, let serial = message.serialOfCall {
                return .asked(serial: serial)
            }
        }
        return .nothing
    }

    private mutating func reply(_ index: Int, _ serial: Int, _ text: String? = nil) {
        connections[index].inbox.append(.replied(serial: serial, text))
    }

    private mutating func fail(_ index: Int, _ serial: Int) {
        if connections[index].isOpen { connections[index].inbox.append(.failed(serial: serial)) }
    }

    private mutating func deliver(_ post: Int, _ name: Int, isForged: Bool) {
        for index in known {
            let hears =
                isForged ? connections[index].hearsForged : connections[index].heard >> UInt8(name) & 1 == 1
            if hears { connections[index].inbox.append(.post(post)) }
        }
    }

    /// - Returns: whether there is a receiver.
    private mutating func pass(_ message: PeerMessage, from index: Int, to name: String) -> Bool {
        guard let receiver = self.index(of: name) else {
            if let serial = message.serialOfCall { fail(index, serial) }
            return false
        }
        if let serial = message.serialOfCall {
            let call = Pending(caller: index, serial: serial, callee: receiver)
            // In an order that does not tell who called first.
            let place = pending.firstIndex { ($0.caller, $0.serial) > (index, serial) }
            pending.insert(call, at: place ?? pending.endIndex)
        }
        if let serial = message.serialOfAnswer {
            guard let place = pending.firstIndex(where: { $0.caller == receiver && $0.serial == serial }) else {
                return false
            }
            pending.remove(at: place)
        }
        connections[receiver].inbox.append(.peer(from: connections[index].name, message))
        return true
    }

    /// What tells two apart. Of a connection that has ended, only what can still be read makes a difference.
    func hash(into hasher: inout Hasher) {
        for connection in connections {
            hasher.combine(connection.owner)
            hasher.combine(connection.isOpen)
            hasher.combine(connection.lingers)
            hasher.combine(connection.isTorn)
            hasher.combine(connection.inbox.count)
            for message in connection.inbox.waiting { message.hash(into: &hasher) }
            guard connection.isOpen else { continue }
            hasher.combine(connection.outbox.count)
            for message in connection.outbox.waiting { message.hash(into: &hasher) }
            hasher.combine(connection.rules)
            hasher.combine(connection.watchesOwner)
        }
        hasher.combine(agent)
        hasher.combine(pending)
        hasher.combine(starters)
        hasher.combine(isAway)
        hasher.combine(number)
    }

    // MARK: - The agent's name

    private mutating func requestName(_ index: Int, _ serial: Int) {
        if let agent, agent != index { connections[agent].inbox.append(.nameLost) }
        agent = index
        announceOwner(connections[index].name)
        for one in starters where connections[one.connection].isOpen { reply(one.connection, one.serial) }
        starters = []
        if serial > 0 { reply(index, serial) }
    }

    private mutating func announceOwner(_ name: String) {
        for index in known where connections[index].watchesOwner {
            connections[index].inbox.append(.ownerChanged(name))
        }
    }

    /// It ends, and with it every connection.
    ///
    /// - Parameter readable: how many messages of a connection's queue can still be read.
    mutating func end(readable: Int) {
        for index in connections.indices {
            disconnect(index, readable: readable)
            connections[index].lingers = false
        }
        (pending, starters, isAway) = ([], [], true)
    }

    mutating func begin() {
        guard isAway else { return }
        isAway = false
        number += 1
        first = connections.count
    }

    /// The agent that was started ended before it got the name.
    mutating func failStarters() {
        for one in starters { fail(one.connection, one.serial) }
        starters = []
    }

    /// A program ends. The bus still reads what it has written.
    mutating func hangUp(_ index: Int) {
        if connections[index].isOpen { write(.hangUp, index) }
        if case .poster = connections[index].owner { connections[index].lingers = true }
    }

    /// A connection ends.
    ///
    /// - Parameter readable: how many messages of its queue can still be read.
    mutating func disconnect(_ index: Int, readable: Int = .max) {
        guard connections[index].isOpen else { return }
        connections[index].isOpen = false
        known.removeAll { $0 == index }
        writers.removeAll { $0 == index }
        connections[index].outbox.removeAll()
        if readable < connections[index].inbox.count { connections[index].inbox.keepFirst(readable) }
        for call in pending where call.callee == index { fail(call.caller, call.serial) }
        pending.removeAll { $0.callee == index || $0.caller == index }
        if agent == index {
            agent = nil
            announceOwner("")
        }
    }
}

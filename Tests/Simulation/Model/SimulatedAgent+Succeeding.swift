// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// What an agent has left to the next one, and no agent has taken over yet.
struct Estate: Hashable {
    let heritage: Heritage
    /// The connection of the agent that has left it. The bus still queues for it.
    let connection: Int
}

// An agent hands over what it knows, and the next one takes over: what `Agent+HandingOver` and `Agent+Inheriting` do.
extension SimulatedAgent {
    /// What an agent knows of the one before it until it serves.
    struct Predecessor: Hashable {
        /// As in the agent.
        static let id = ConnectionID(0)
        static let mark: UInt64 = 0

        let connection: Int
        var found: [Int] = []
        var hasMark = false
        /// Whether the mark has been sent, and what is queued is being read.
        var isRead = false
    }

    struct HeldCall {
        let sender: String
        let message: PeerMessage
    }

    /// How long an agent waits until no change is under way, and how long it takes until everybody has registered with the
    /// next one, in nanoseconds.
    private static let patience: Int64 = 1_000_000_000
    private static let arrival: Int64 = 10_000_000_000

    // MARK: - Handing over

    func beginsToLeave(_ world: World) {
        isLeaving = true
        if isServing { leavesAt = world.clock + SimulatedAgent.patience }
    }

    /// Whether it can hand over now.
    func canLeave(_ world: World) -> Bool {
        isLeaving && isServing && isAtRest && !senders.isHolding && world.bus.isIdle(connection)
    }

    /// Stops reading, and leaves its connection as it is.
    func handOver(_ world: World) {
        let heritage = self.heritage
        for (_, caller) in calls.sorted(by: { $0.key.number < $1.key.number }) where caller.serial >= 0 {
            world.bus.write(.send(to: caller.name, .refused(caller.serial)), connection)
        }
        if world.mutation == .refusesUnread {
            for case .peer(let sender, let message) in world.bus[connection].inbox.waiting {
                guard let serial = message.serialOfCall else { continue }
                world.bus.write(.send(to: sender, .refused(serial)), connection)
            }
        }
        calls = [:]
        feed(.ending(keeping: Set(heritage.processes.filter { $0.frozenFor != nil }.map(\.id))), world)
        isAlive = false
        world.isHandedOver(Estate(heritage: heritage, connection: connection))
    }

    // MARK: - Taking over

    func inherit(_ estate: Estate, _ world: World) {
        predecessor = Predecessor(connection: estate.connection)
        var heritage = estate.heritage
        if world.mutation == .forgetsHandedOver {
            for index in heritage.connections.indices { heritage.connections[index].pending = [] }
        }
        let processes = Set(heritage.connections.map(\.process)).sorted().filter { !world.process($0).hasEnded }
        for index in heritage.processes.indices where !world.process(heritage.processes[index].id).isFrozen {
            heritage.processes[index].frozenFor = nil
        }
        feed(.inherit(heritage, processes.map { facts(of: $0, world) }), world)
    }

    func knowsFrozen(_ process: Int) -> Bool {
        heritage.processes.contains { $0.id == SimulatedAgent.process(process) && $0.frozenFor != nil }
    }

    func facts(of process: ProcessID, _ world: World) -> Newcomer.ProcessFacts {
        Newcomer.ProcessFacts(id: process, application: world.setting.application(of: Int(process.pid) - 100))
    }

    /// From now on it hears what the one before it hears.
    func requestName(_ world: World) {
        ask(.name, .requestName(serial: lastSerial + 1), world)
    }

    /// Reads what the bus has queued for the one before it. Posts behind the mark are heard here.
    func beginReading(_ world: World) {
        guard let connection = predecessor?.connection else { return }
        predecessor?.isRead = true
        if world.mutation == .leavesNoMark { return }
        world.bus.write(.send(to: world.bus[connection].name, .mark(Predecessor.mark)), self.connection)
    }

    func canReadPredecessor(_ world: World) -> Bool {
        guard let predecessor, predecessor.isRead else { return false }
        return world.bus.hasNews(predecessor.connection)
    }

    /// Whether nothing will come any more, not even the mark.
    func isStuck(_ world: World) -> Bool {
        guard let predecessor, predecessor.isRead else { return false }
        return world.bus.isIdle(connection) && !world.bus.hasNews(predecessor.connection)
    }

    /// Reads a message.
    func readPredecessor(_ world: World) {
        guard let connection = predecessor?.connection, predecessor?.isRead == true else { return }
        if world.mutation == .endsStreamEarly { predecessor?.hasMark = true }
        guard predecessor?.hasMark == false, let message = world.bus[connection].inbox.popFirst() else {
            return finishReading(world)
        }
        switch message {
        case .post(let post): if world.isPost(post) { predecessor?.found.append(post) }
        case .peer(let sender, .mark(Predecessor.mark)) where sender == world.bus[self.connection].name:
            predecessor?.hasMark = true
            finishReading(world)
        default: break
        }
    }

    /// Ends the connection of the one before it.
    func finishReading(_ world: World) {
        guard let (connection, found) = predecessor.map({ ($0.connection, $0.found) }) else { return }
        predecessor?.isRead = false
        world.close(connection)
        let plain = Set(found.map { world.posts[$0].name }).subtracting([Subject.owned])
        let senders = Set(found.filter { world.posts[$0].name == Subject.owned }.map(world.posterName))
        let names = plain.sorted().map { Subject.names[$0] }
        ask(.stream(Predecessor.id, names, senders.sorted()[...]), .ask(serial: lastSerial + 1), world)
    }

    /// It knows what the one before it knew, and begins to serve.
    func predecessorIsRead(_ names: [NotifyName], _ world: World) {
        for name in names { feed(.posted(name), world) }
        if predecessor?.hasMark == false { feed(.heritageIsPartial, world) }
        predecessor = nil
        if !heritage.states.isEmpty { heritageAgesAt = world.clock + SimulatedAgent.arrival }
        if isLeaving { leavesAt = world.clock + SimulatedAgent.patience }
    }

    func heritageIsOld(_ world: World) {
        heritageAgesAt = nil
        // Not everybody may have registered yet.
        if !world.isAtRest { world.heldStates = [:] }
        feed(.heritageIsOld, world)
    }
}

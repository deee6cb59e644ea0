// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import Testing

@testable import NotifyCoordinator

/// What an agent leaves to the next one about connections that hear nothing.
@Suite struct HeritageTests {
    private static let process = World.process(11)

    /// A suspended connection, as it is handed over.
    private func connection(
        _ decision: Decision,
        _ name: String = ":1.1",
        _ change: (inout Heritage.Connection) -> Void = { _ in }
    ) -> Heritage.Connection {
        var connection = Heritage.Connection(process: Self.process)
        (connection.name, connection.subjects) = (name, Subjects(names: ["com.example.a"]))
        connection.decision = decision
        change(&connection)
        return connection
    }

    private func inherit(_ heritage: Heritage, _ world: inout World, application: String = "") {
        world.send(.inherit(heritage, [Newcomer.ProcessFacts(id: Self.process, application: application)]))
        world.settle()
    }

    @Test func `everything can be handed over while no connection changes its state`() throws {
        var world = World()
        for (number, state) in [LifecycleState.foreground, .background, .suspended].enumerated() {
            _ = try world.register(":1.\(number)", World.process(Int32(number + 11)), ["com.example.a"])
            _ = try world.set(":1.\(number)", state)
            #expect(world.coordinator.isAtRest == (state == .foreground))
            world.settle()
            #expect(world.coordinator.isAtRest)
        }
    }

    @Test func `what an agent has taken over and not changed it hands over as it was`() {
        var heritage = Heritage()
        heritage.connections = [
            connection(Decision(.suspended, by: .program)) { connection in
                (connection.program, connection.person) = ("reader", .foreground)
                (connection.pending, connection.dropped, connection.reportedDropped) = (["com.example.a"], 3, 2)
                (connection.since, connection.followsDesktop) = (5, true)
            },
            connection(Decision(.suspended, by: .program), ":1.2") { connection in
                (connection.isParked, connection.stateAfterParking) = (true, .suspended)
            },
        ]
        var process = Heritage.Process(Self.process)
        process.report = .suspended
        heritage.processes = [process]
        heritage.states = [Heritage.State(name: "com.example.a", entry: NameStateTable.Entry(value: 7, stamp: 0))]
        // What a person has set does not count as long as the configuration makes an exception of it.
        var world = World { $0.exemptApplications = ["org.example.App"] }
        inherit(heritage, &world, application: "org.example.App")
        #expect(world.coordinator.heritage == heritage)
    }

    @Test func `a connection of a program that napped is resumed once it has registered with an agent without naps`()
        throws
    {
        var heritage = Heritage()
        heritage.connections = [connection(Decision(.suspended, by: Naps.decider))]
        var world = World()
        inherit(heritage, &world)
        let id = try #require(world.coordinator.id(of: ":1.1"))
        // It does not know this agent yet.
        #expect(world.states[id] == nil)
        _ = try world.register(":1.1", Self.process, ["com.example.a"]) { statement in
            (statement.state, statement.decider) = (.suspended, Naps.decider.name)
        }
        world.settle()
        #expect(world.states[id] == .foreground && world.coordinator.directory[id]?.state == .foreground)
    }

    @Test(arguments: [nil, "too many rules"])
    func `what a connection has missed is complete only if the bus lets the next agent hear its names`(
        failure: String?
    ) throws {
        var heritage = Heritage()
        heritage.connections = [connection(Decision(.suspended, by: .person)) { $0.person = .suspended }]
        var world = World()
        world.ruleFailure = failure
        inherit(heritage, &world)
        world.ruleFailure = nil
        let call = try world.register(":1.1", Self.process, ["com.example.a"]) { statement in
            (statement.state, statement.decider) = (.suspended, "person")
        }
        world.settle()
        #expect(world.answers[call] == .registered(.suspended, pending: [], isComplete: failure == nil))
    }

    @Test func `a heritage is taken over, once, when all its names are subscribed, also if a connection has none`() {
        for hasMore in [false, true] {
            var heritage = Heritage()
            heritage.connections = [connection(Decision(.suspended, by: .person)) { $0.subjects = Subjects() }]
            if hasMore { heritage.connections.append(connection(Decision(.suspended, by: .person), ":1.2")) }
            var coordinator = Coordinator(Coordinator.Configuration())
            var events = [Event.inherit(heritage, [Newcomer.ProcessFacts(id: Self.process, application: "")])]
            var log: [String] = []
            while !events.isEmpty {
                for effect in coordinator.handle(events.removeFirst(), at: Timestamp(nanoseconds: 0)) {
                    if case .subscribe(let ticket, _, _) = effect { events.append(.rulesAreSet(ticket, failure: nil)) }
                    if case .isInherited = effect { log.append("taken over") }
                }
                log.append("handled")
            }
            #expect(log == (hasMore ? ["handled", "taken over", "handled"] : ["taken over", "handled"]))
        }
    }

    @Test(arguments: ["org.example.App", ""])
    func `a new process is what a person has made of others of its application`(application: String) throws {
        var world = World()
        _ = try world.register(":1.1", Self.process, ["com.example.a"], application: application) { statement in
            (statement.state, statement.decider) = (.suspended, "person")
        }
        _ = try world.register(":1.2", World.process(12), ["com.example.a"], application: application)
        world.settle()
        let id = try #require(world.coordinator.id(of: ":1.2"))
        #expect(world.coordinator.directory[id]?.state == (application.isEmpty ? .foreground : .suspended))
    }

    @Test func `no more connections are taken over than a user may have`() {
        var heritage = Heritage()
        heritage.connections = (1...3).map { connection(Decision(.suspended, by: .person), ":1.\($0)") }
        var quotas = Quotas()
        quotas.connections = 2
        var world = World(quotas)
        inherit(heritage, &world)
        #expect(world.coordinator.directory.observers.count == 2)
    }

    @Test func `a connection that hears by the relay is not handed over, as the relay says what it has missed`() throws
    {
        var world = World()
        _ = try world.register(":1.1", Self.process, ["com.example.a"], isRelayed: true)
        _ = try world.set(":1.1", .suspended)
        world.settle()
        #expect(world.states.values.map(\.self) == [.suspended] && world.coordinator.heritage.connections.isEmpty)
    }

    @Test func `a connection that is to remember states is told all of them, a thousand at once`() throws {
        var witnesses = StateWitnesses()
        let id = ConnectionID(1)
        let names = Set(try (0...StateWitnesses.part).map { try NotifyName("com.example.n\($0)") })
        for name in names { witnesses.mustBeTold(id, name) }
        let first = witnesses.next(id)
        #expect(first.count == StateWitnesses.part && witnesses.hasToBeTold(id))
        #expect(Set(first + witnesses.next(id)) == names && !witnesses.hasToBeTold(id))
    }

    @Test func `a state that was handed over is forgotten with its last observer once all have registered`() {
        var table = NameStateTable()
        table.inherit(NameStateTable.Entry(value: 7, stamp: 0), of: "com.example.a", now: 1)
        table.forget(["com.example.a"]) { _ in false }
        #expect(table["com.example.a"] == 7)
        table.forgetAll { _ in true }
        table.forget(["com.example.a"]) { _ in false }
        #expect(table["com.example.a"] == 0)
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// States of names: who may set them, who keeps them, and what a restarted agent believes.
@Suite struct NameStateTests {
    private static let own: UInt32 = 1_000
    private static let other: UInt32 = 2_000

    private func setNameState(_ world: inout World, _ name: String, by user: UInt32) throws -> CallID {
        let call = world.call()
        world.send(.setNameState(call, by: Caller(user: user), try NotifyName(name), 7))
        return call
    }

    private func nameState(_ world: inout World, _ name: String) throws -> Effect.Answer? {
        let call = world.call()
        world.send(.getNameState(call, try NotifyName(name)))
        return world.answers[call]
    }

    @Test func `a state is swapped only if it is what the caller knows, and the caller may set it`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a", "user.uid.1000.a"])
        func swap(_ name: String, _ old: UInt64, _ new: UInt64, by user: UInt32 = Self.own) throws -> CallID {
            let call = world.call()
            world.send(.swapNameState(call, by: Caller(user: user), try NotifyName(name), old, new))
            return call
        }
        for (old, new, present) in [(0, 5, 0), (0, 6, 5), (5, 7, 5)] as [(UInt64, UInt64, UInt64)] {
            let call = try swap("com.example.a", old, new)
            guard case .swapped(let value, let stamp)? = world.answers[call] else {
                Issue.record("no answer")
                return
            }
            #expect(value == present && (stamp > 0) == (old == present))
        }
        #expect(try nameState(&world, "com.example.a") == .value(7))
        let denied = try swap("user.uid.1000.a", 0, 1, by: Self.other)
        #expect(world.refusals[denied]?.kind == .accessDenied)
        let unobserved = try swap("com.example.b", 0, 1)
        #expect(world.refusals[unobserved]?.kind == .notObserved)
    }

    @Test func `a state that was handed over stays until the observers of the name have registered`() throws {
        var heritage = Heritage()
        let entry = NameStateTable.Entry(value: 7, stamp: 0)
        heritage.states = [Heritage.State(name: "com.example.a", entry: entry)]
        for isOver in [false, true] {
            var world = World()
            world.send(.inherit(heritage, []))
            let early = try setNameState(&world, "com.example.a", by: Self.own)
            #expect((world.answers[early] != nil) && world.refusals[early] == nil)
            if isOver { world.send(.heritageIsOld) }
            // One of those that observe it registers and goes before the others have registered.
            _ = try world.register(":1.1", World.process(11), ["com.example.a"])
            world.send(.processEnded(World.process(11)))
            #expect(try nameState(&world, "com.example.a") == .value(isOver ? 0 : 7))
            world.send(.heritageIsOld)
            #expect(try nameState(&world, "com.example.a") == .value(0))
        }
    }

    @Test func `one of those that observe a name is told its state, by one call at a time`() throws {
        var world = World()
        let names = ["com.example.a", "com.example.b", "com.example.c"]
        let ids = try (1...3).map { number in
            _ = try world.register(":1.\(number)", World.process(Int32(number)), names)
            return try #require(world.coordinator.id(of: ":1.\(number)"))
        }
        world.answersKeeping = false
        for name in names { _ = try setNameState(&world, name, by: Self.own) }
        #expect(world.kept == [ids[0]: [["com.example.a 7"]]])
        world.send(.statesAreKept(ids[0]))
        #expect(world.kept[ids[0]]?.last == ["com.example.b 7", "com.example.c 7"])
        world.send(.connectionEnded(ids[0]))
        #expect(world.kept[ids[1]] == [["com.example.a 7", "com.example.b 7", "com.example.c 7"]])
        world.send(.connectionEnded(ids[1]))
        #expect(world.kept[ids[2]]?.count == 1)
        world.send(.connectionEnded(ids[2]))
        guard case .value(0)? = try nameState(&world, "com.example.a") else { return #expect(Bool(false)) }
    }

    @Test func `a process that has been stopped remembers no state, and one that could not be does`() throws {
        for outcome in [.frozen, .failed("no such unit")] as [Event.FreezeOutcome] {
            var world = World()
            let ids = try (11...12).map { number in
                _ = try world.register(":1.\(number)", World.process(Int32(number)), ["com.example.\(number)", "a.b"])
                return try #require(world.coordinator.id(of: ":1.\(number)"))
            }
            _ = try setNameState(&world, "a.b", by: Self.own)
            world.settle()
            #expect(world.kept == [ids[0]: [["a.b 7"]]])
            world.freezeOutcome = outcome
            _ = try world.set(":1.11", .suspended, freezes: true)
            while world.kernel.isEmpty, !world.isAtRest {
                world.stepBus()
                world.stepObservers()
            }
            // It may be stopped already.
            _ = try setNameState(&world, "com.example.11", by: Self.own)
            #expect(world.kept[ids[0]] == [["a.b 7"]])
            world.settle()
            #expect(world.kept[ids[0]]?.last == [outcome == .frozen ? "a.b 7" : "com.example.11 7"])
            #expect(world.kept[ids[1]] == (outcome == .frozen ? [["a.b 7"]] : nil))
        }
    }

    @Test func `a program that may not set the state of a name is not asked to remember it`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(1, user: Self.other), ["user.uid.1000.a"])
        _ = try setNameState(&world, "user.uid.1000.a", by: Self.own)
        #expect(world.kept.isEmpty)
        _ = try world.register(":1.2", World.process(2, user: Self.own), ["user.uid.1000.a"])
        let id = try #require(world.coordinator.id(of: ":1.2"))
        #expect(world.kept == [id: [["user.uid.1000.a 7"]]])
    }

    @Test func `the state of a name is set by users who may post it, while it has observers`() throws {
        var configuration = Coordinator.Configuration()
        configuration.events = ["org.notifybus.session.lock"]
        configuration.pinnedStates = ["com.example.pinned": 3]
        configuration.reservesNames = true
        var world = World(configuration)
        let process = World.process(1)
        let names = [
            "com.example.a", "user.uid.1000.a", "com.apple.system.a", "org.notifybus.session.lock",
        ]
        _ = try world.register(":1.1", process, names, prefixes: ["com.example.prefixed."])
        let event = try setNameState(&world, "org.notifybus.session.lock", by: 0)
        #expect(world.refusals[event]?.kind == .accessDenied)
        for (name, owner): (String, UInt32) in [("user.uid.1000.a", Self.own), ("com.apple.system.a", 0)] {
            let denied = try setNameState(&world, name, by: Self.other)
            #expect(world.refusals[denied]?.kind == .accessDenied, "\(name)")
            for user in [owner, 0] {
                let call = try setNameState(&world, name, by: user)
                #expect(world.answers[call] != nil, "\(name)")
            }
        }
        for unobserved in ["com.example.b", "com.example.prefixed.a"] {
            let call = try setNameState(&world, unobserved, by: 0)
            #expect(world.refusals[call]?.kind == .notObserved)
        }
        #expect(try nameState(&world, "com.example.pinned") == .value(3))
        let pinned = try setNameState(&world, "com.example.pinned", by: Self.other)
        let usual = try setNameState(&world, "com.example.a", by: Self.other)
        #expect(world.answers[pinned] != nil && world.answers[usual] != nil)
        // Each has a stamp of its own.
        #expect(world.answers[pinned] != world.answers[usual])
        #expect(try nameState(&world, "com.example.a") == .value(7))
        // It goes with its last observer, but for what is kept.
        world.send(.removeNames(world.call(), from: ":1.1", try Subjects(names: names, prefixes: [])))
        #expect(try nameState(&world, "com.example.a") == .value(0))
        #expect(try nameState(&world, "com.example.pinned") == .value(7))
        // The agent itself says what those of events are.
        world.send(.eventState("org.notifybus.session.lock", 1))
        #expect(try nameState(&world, "org.notifybus.session.lock") == .value(1))
    }

    @Test func `a restarted agent believes the newest states that observers had set, as far as they may`() throws {
        var configuration = Coordinator.Configuration()
        configuration.events = ["com.example.event"]
        configuration.reservesNames = true
        var world = World(configuration)
        world.time = 100
        func register(_ name: String, _ states: [(String, UInt64, UInt64)]) throws {
            let names = ["com.example.a", "com.example.event", "com.apple.system.a"]
            _ = try world.register(name, World.process(1), names) { statement in
                statement.states = states.compactMap { text, value, stamp in
                    (try? NotifyName(text)).map { (name: $0, entry: .init(value: value, stamp: stamp)) }
                }
            }
        }
        let forged: [(String, UInt64, UInt64)] = [
            ("com.example.event", 5, 10), ("com.apple.system.a", 5, 10), ("com.example.unobserved", 5, 10),
        ]
        try register(":1.1", [("com.example.a", 5, 10)] + forged)
        #expect(try nameState(&world, "com.example.a") == .value(5))
        for (name, _, _) in forged { #expect(try nameState(&world, name) == .value(0), "\(name)") }
        try register(":1.2", [("com.example.a", 6, 9)])
        #expect(try nameState(&world, "com.example.a") == .value(5))
        try register(":1.3", [("com.example.a", 7, 11)])
        #expect(try nameState(&world, "com.example.a") == .value(7))
        // A state that claims to come from the future counts as set now.
        try register(":1.4", [("com.example.a", 8, 1_000)])
        #expect(try nameState(&world, "com.example.a") == .value(8))
        world.time = 200
        _ = try setNameState(&world, "com.example.a", by: Self.own)
        try register(":1.5", [("com.example.a", 9, 150)])
        #expect(try nameState(&world, "com.example.a") == .value(7))
        // A connection that registers again says it once more.
        try register(":1.5", [("com.example.a", 10, 300)])
        #expect(try nameState(&world, "com.example.a") == .value(7))
        world.time = 300
        try register(":1.5", [("com.example.a", 10, 300)])
        #expect(try nameState(&world, "com.example.a") == .value(10))
    }
}

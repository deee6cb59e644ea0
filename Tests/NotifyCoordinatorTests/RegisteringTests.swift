// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

@Suite struct RegisteringTests {
    @Test func `names that an observer of many adds or removes one by one are changed in place`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), (0..<10_000).map { "com.example.n\($0)" })
        for state in [LifecycleState.foreground, .suspended] {
            _ = try world.set(":1.1", state)
            world.settle()
            var moves = 0
            for number in 0..<20 {
                // The one word that a set consists of is the place of its elements.
                let before = unsafeBitCast(try #require(world.names(of: ":1.1")), to: UInt.self)
                let subjects = try Subjects(names: ["com.example.more\(number)"], prefixes: [])
                world.send(.addNames(world.call(), from: ":1.1", subjects))
                if number % 2 == 0 { world.send(.removeNames(world.call(), from: ":1.1", subjects)) }
                if unsafeBitCast(try #require(world.names(of: ":1.1")), to: UInt.self) != before { moves += 1 }
            }
            // It may have had to grow.
            #expect(moves <= 1)
        }
    }

    @Test func `an addition that was refused before it was looked at is not waited for`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        world.send(.additionWasRefused(from: ":1.1"))
        world.send(.additionWasRefused(from: ":1.2"))
        let id = try #require(world.coordinator.id(of: ":1.1"))
        #expect(world.coordinator.directory[id]?.additions == 1)
    }

    @Test func `a connection that registers again is watched again, and observes what it says now`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a", "com.example.b"])
        let id = try #require(world.coordinator.id(of: ":1.1"))
        _ = try world.register(":1.1", World.process(11), ["com.example.b", "com.example.c"])
        #expect(world.begun == [id, id] && world.coordinator.totals.observers == 1)
        #expect(world.names(of: ":1.1") == ["com.example.b", "com.example.c"])
    }

    @Test func `a connection whose process can't be watched is not parked`() throws {
        for isWatched in [true, false] {
            var world = World()
            var facts = Newcomer.ProcessFacts(id: World.process(11), application: "")
            facts.isWatched = isWatched
            let statement = Newcomer.Statement(Subjects(names: ["com.example.a"]))
            let newcomer =
                Newcomer(name: ":1.1", user: 1_000, process: facts, hasSocket: true, statement: statement)
            world.send(.register(world.call(), newcomer))
            let id = try #require(world.coordinator.id(of: ":1.1"))
            #expect(world.coordinator.directory[id]?.hasSocket == isWatched)
            world.send(.processStopped(World.process(11)))
            world.settle()
            #expect(world.coordinator.totals.parked == (isWatched ? 1 : 0))
        }
    }

    @Test func `a report to an earlier agent counts for each connection, whoever registers first`() throws {
        for isFirst in [true, false] {
            var world = World()
            let process = World.process(7)
            func register(_ name: String, _ state: LifecycleState, by decider: String) throws {
                _ = try world.register(name, process, ["com.example.a"]) { statement in
                    (statement.state, statement.decider, statement.previous) = (state, decider, name)
                }
            }
            // One of them has given up on the agent in the meantime, and forgotten who had decided.
            if isFirst { try register(":1.1", .suspended, by: "program") }
            try register(":1.2", .foreground, by: "default")
            if !isFirst { try register(":1.1", .suspended, by: "program") }
            world.settle()
            for name in [":1.1", ":1.2"] {
                let id = try #require(world.coordinator.id(of: name))
                #expect(world.coordinator.entry(of: id)?.state == .suspended, "\(name)")
            }
        }
    }
}

extension World {
    fileprivate func names(of name: String) -> Set<NotifyName>? {
        coordinator.id(of: name).flatMap { coordinator.directory[$0]?.subjects.names }
    }

    /// When it adds a name, and what it is told when it registers again.
    enum Addition: CaseIterable { case beforeItStops, whileItIsParked, ofPrefix, untold }

    @Test(arguments: Addition.allCases)
    func `a program hears of what it added while it was parked, posted or not`(_ addition: Addition) throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        world.settle()
        func add(_ names: [String], _ prefixes: [String] = []) throws {
            world.send(.addNames(world.call(), from: ":1.1", try Subjects(names: names, prefixes: prefixes)))
        }
        if addition == .beforeItStops { try add(["com.example.b"]) }
        world.send(.processStopped(process))
        // The agent has subscribed to its names, and ends its connection.
        world.stepBus()
        if addition == .whileItIsParked { try add(["com.example.b"]) }
        if addition == .ofPrefix { try add([], ["com.example.b"]) }
        world.send(.processContinued(process))
        let names = ["com.example.a"] + (addition == .ofPrefix ? [] : ["com.example.b"])
        let prefixes = addition == .ofPrefix ? ["com.example.b"] : []
        let call = try world.register(":1.2", process, names, prefixes: prefixes) { $0.previous = ":1.1" }
        world.settle()
        let pending = addition == .whileItIsParked || addition == .untold ? [NotifyName("com.example.b")] : []
        #expect(world.answers[call] == .registered(.foreground, pending: pending, isComplete: addition != .ofPrefix))
    }

    @Test(arguments: [LifecycleState.background, .suspended])
    func `what was added while it was parked is reported once, not each time that it is parked`(
        _ state: LifecycleState
    ) throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        _ = try world.set("pid:7", state)
        world.settle()
        // Parked in the foreground, and put into another state meanwhile, with a name that nobody was told of.
        _ = try world.set("pid:7", .foreground)
        world.settle()
        world.send(.processStopped(process))
        world.stepBus()
        _ = try world.set("pid:7", state)
        world.send(.processContinued(process))
        _ = try world.register(":1.2", process, ["com.example.a", "com.example.b"]) { $0.previous = ":1.1" }
        world.settle()
        _ = try world.set("pid:7", .foreground)
        world.settle()
        // It has read what it was handed.
        world.send(.delivered(try #require(world.coordinator.id(of: ":1.2"))))
        world.send(.processStopped(process))
        world.settle()
        world.send(.processContinued(process))
        let call = try world.register(":1.3", process, ["com.example.a", "com.example.b"]) { $0.previous = ":1.2" }
        world.settle()
        #expect(world.answers[call] == .registered(.foreground, pending: [], isComplete: true))
    }
}

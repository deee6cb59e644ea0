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

    @Test func `a process is announced with its first observer, and again once all have gone`() throws {
        var world = World()
        let process = World.process(11)
        for round in 1...2 {
            for name in [":1.1", ":1.2"] {
                _ = try world.register(name, process, ["com.example.a"])
                #expect(world.present == Array(repeating: process, count: round))
            }
            for name in [":1.1", ":1.2"] { world.send(.connectionEnded(try #require(world.coordinator.id(of: name)))) }
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
        let looks = world.looks
        let (process, names) = (World.process(11), ["com.example.b", "com.example.c"])
        let call = try world.register(":1.1", process, names) { $0.program = "b" }
        #expect(world.answers[call] == .registered(.foreground, pending: [], isComplete: false))
        // Only the new watch now says whether its process is stopped.
        #expect(world.looks == looks + 1 && world.watched == [World.process(11)])
        #expect(world.begun == [id, id] && world.coordinator.totals.observers == 1)
        #expect(world.names(of: ":1.1") == ["com.example.b", "com.example.c"])
        #expect(world.coordinator.directory[id]?.program == "b")
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

    @Test func `nothing is known of a connection that has gone, and its name may come again`() throws {
        var world = World()
        for _ in 0..<2 {
            let call = try world.register(":1.1", World.process(11), ["com.example.a"])
            #expect(world.answers[call] == .registered(.foreground, pending: [], isComplete: false))
            let id = try #require(world.coordinator.id(of: ":1.1"))
            world.send(.connectionEnded(id))
            #expect(world.coordinator.id(of: ":1.1") == nil)
        }
    }

    @Test func `a post that comes before posts are kept leaves the rule, so that later ones are`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        let id = try #require(world.coordinator.id(of: ":1.1"))
        _ = try world.set(":1.1", .suspended)
        world.stepBus()
        // The mark has not come yet.
        world.send(.posted("com.example.a"))
        #expect(world.rules == ["com.example.a"] && world.coordinator.directory[id]?.pending.isEmpty == true)
        world.settle()
        world.send(.posted("com.example.a"))
        #expect(world.rules.isEmpty && world.coordinator.directory[id]?.pending.contains("com.example.a") == true)
    }

    @Test func `whether a process was stopped or continues is shown`() throws {
        var world = World { $0.sources = [Coordinator.freezerSource] }
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        world.send(.processStopped(World.process(11)))
        #expect(world.coordinator.sources.entries.first?.fact == .stillness(process: 11, isStill: true))
        world.send(.processContinued(World.process(11)))
        #expect(world.coordinator.sources.entries.first?.fact == .stillness(process: 11, isStill: false))
    }

    @Test
    func `what comes before the agent has a stopped program's names is in its stream only, whatever is asked of it`()
        throws
    {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        let id = try #require(world.coordinator.id(of: ":1.1"))
        world.send(.processStopped(World.process(11)))
        _ = try world.set(":1.1", .suspended)
        // If it continues now, it reads this by itself, and does not hear it again.
        world.send(.posted("com.example.a"))
        #expect(world.coordinator.directory[id]?.pending.isEmpty == true)
        world.stepBus()
        world.send(.posted("com.example.a"))
        #expect(world.coordinator.directory[id]?.pending.contains("com.example.a") == true)
    }

    @Test func `a stopped program that is to be suspended is kept all it observes, though it has just added a name`()
        throws
    {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        let id = try #require(world.coordinator.id(of: ":1.1"))
        world.send(.processStopped(World.process(11)))
        world.settle()
        _ = try world.set(":1.1", .background)
        world.settle()
        world.send(.addNames(world.call(), from: ":1.1", Subjects(names: ["com.example.b"])))
        _ = try world.set(":1.1", .suspended)
        world.settle()
        #expect(world.rules == ["com.example.a", "com.example.b"])
        for name in ["com.example.a", "com.example.b"] as [NotifyName] {
            world.send(.posted(name))
            #expect(world.coordinator.directory[id]?.pending.contains(name) == true)
        }
    }

    @Test func `a stopped program hears of what the bus has refused the agent, posted or not`() throws {
        var world = World()
        let process = World.process(11)
        _ = try world.register(":1.1", process, ["com.example.a"])
        world.ruleFailure = "too many rules"
        world.send(.processStopped(process))
        world.settle()
        world.ruleFailure = nil
        world.send(.processContinued(process))
        let call = try world.register(":1.2", process, ["com.example.a"]) { $0.previous = ":1.1" }
        world.settle()
        #expect(world.answers[call] == .registered(.foreground, pending: ["com.example.a"], isComplete: true))
    }

    @Test func `a connection is told which states to remember only once it knows the agent`() throws {
        var world = World()
        let process = World.process(11)
        _ = try world.register(":1.1", process, ["com.example.a"])
        let old = try #require(world.coordinator.id(of: ":1.1"))
        world.send(.setNameState(world.call(), by: Caller(user: 1_000), "com.example.a", 7))
        world.settle()
        #expect(world.kept[old] == [["com.example.a 7"]])
        _ = try world.set(":1.1", .suspended)
        world.settle()
        // It is answered once the agent hears for it.
        let call = try world.register(":1.2", process, ["com.example.a", "com.example.b"]) { statement in
            (statement.previous, statement.state) = (":1.1", .suspended)
        }
        let new = try #require(world.coordinator.id(of: ":1.2"))
        world.send(.connectionEnded(old))
        #expect(world.answers[call] == nil && world.kept[new] == nil)
        world.settle()
        #expect(world.answers[call] != nil && world.kept[new] == [["com.example.a 7"]])
    }

    /// A program was stopped, and continues while the agent reads what was queued for it.
    ///
    /// - Returns: its old connection and its new one, which has confirmed that it hears posts.
    private func continueWhileParked(_ world: inout World) throws -> (ConnectionID, ConnectionID) {
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        let old = try #require(world.coordinator.id(of: ":1.1"))
        world.send(.processStopped(World.process(11)))
        world.stepBus()
        world.send(.processContinued(World.process(11)))
        return (old, try takeOver(":1.2", from: ":1.1", &world))
    }

    private func takeOver(_ name: String, from previous: String, _ world: inout World) throws -> ConnectionID {
        _ = try world.register(name, World.process(11), ["com.example.a"]) { $0.previous = previous }
        let id = try #require(world.coordinator.id(of: name))
        world.stepBus()
        world.stepObservers()
        return id
    }

    @Test(arguments: [[], ["com.example.a"]] as [[NotifyName]])
    func `a program that continues while its stream is read has everything when that was read`(
        found: [NotifyName]
    ) throws {
        var world = World()
        let (old, new) = try continueWhileParked(&world)
        world.stepBus()
        #expect(world.states[new] == .foreground && world.delivered[new] == nil)
        #expect(world.coordinator.receiver(ofStream: old) == new)
        world.send(.drained(old))
        world.send(.found(new, found))
        #expect(world.delivered[new] == nil)
        world.stepBus()
        #expect(world.delivered[new] == found)
    }

    @Test(arguments: LifecycleState.allCases)
    func `what a started program missed as it registered it hears now, later or never, as if it were posted now`(
        state: LifecycleState
    ) throws {
        var world = World()
        _ = try world.register(":1.1", World.process(10), ["com.example.a", "com.example.b"])
        world.settle()
        let id = try #require(world.coordinator.id(of: ":1.1"))
        if state != .foreground { _ = try world.set(":1.1", state) }
        world.settle()
        let before = world.delivered[id] ?? []
        world.send(.missed(id, ["com.example.a", "com.example.other"]))
        world.settle()
        #expect((world.delivered[id] ?? []) == before + (state == .foreground ? ["com.example.a"] : []))
        _ = try world.set(":1.1", .foreground)
        world.settle()
        #expect((world.delivered[id] ?? []) == before + (state == .background ? [] : ["com.example.a"]))
    }

    @Test func `what was in a stream is for the last connection that has replaced another`() throws {
        var world = World()
        let (old, new) = try continueWhileParked(&world)
        let last = try takeOver(":1.3", from: ":1.2", &world)
        #expect(world.delivered[new] == nil && world.coordinator.receiver(ofStream: old) == last)
        world.send(.drained(old))
        world.send(.found(last, ["com.example.a"]))
        world.settle()
        #expect(world.delivered[new] == nil && world.delivered[last] == ["com.example.a"])
    }

    @Test func `a connection that is replaced before its stream is read leaves nothing to wait for`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        let old = try #require(world.coordinator.id(of: ":1.1"))
        world.send(.processStopped(World.process(11)))
        world.send(.processContinued(World.process(11)))
        _ = try takeOver(":1.2", from: ":1.1", &world)
        world.settle()
        #expect(world.coordinator.receiver(ofStream: old) == nil)
    }

    @Test func `a report to an earlier agent counts for each connection, whichever registers first`() throws {
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
        // Parked in the foreground, and put into another state meanwhile, with a name that no connection was told of.
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

    @Test func `a program that continues is answered at once, as the agent still hears its names`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        world.send(.processStopped(World.process(11)))
        world.settle()
        world.send(.processContinued(World.process(11)))
        let call = try world.register(":1.2", World.process(11), ["com.example.a"]) { $0.previous = ":1.1" }
        #expect(world.answers[call] == .registered(.foreground, pending: [], isComplete: true))
        #expect(world.coordinator.ledger[1_000].names == 1)
    }

    @Test func `what a program was handed just before it was stopped it hears when it registers again`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        _ = try world.set(":1.1", .suspended)
        world.settle()
        world.send(.posted("com.example.a"))
        _ = try world.set(":1.1", .foreground)
        world.settle()
        #expect(!world.coordinator.window.isEmpty)
        world.send(.processStopped(World.process(11)))
        world.settle()
        #expect(world.coordinator.window.isEmpty)
        world.send(.processContinued(World.process(11)))
        let call = try world.register(":1.2", World.process(11), ["com.example.a"]) { $0.previous = ":1.1" }
        world.settle()
        #expect(world.answers[call] == .registered(.foreground, pending: ["com.example.a"], isComplete: true))
        #expect(world.coordinator.ledger[1_000].pendingNames == 0)
    }

    @Test func `a connection that replaces one in the foreground is so at once`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        let call = try world.register(":1.2", World.process(11), ["com.example.a"]) { $0.previous = ":1.1" }
        #expect(world.answers[call] == .registered(.foreground, pending: [], isComplete: false))
    }

    @Test func `a connection that registers suspended is so, even if it is resumed meanwhile`() throws {
        var world = World()
        let call = try world.register(":1.1", World.process(11), ["com.example.a"]) { statement in
            (statement.state, statement.decider) = (.suspended, "person")
        }
        _ = try world.set(":1.1", .foreground)
        world.stepBus()
        #expect(world.answers[call] == .registered(.suspended, pending: [], isComplete: false))
        world.settle()
        #expect(world.states[try #require(world.coordinator.id(of: ":1.1"))] == .foreground)
    }

    @Test func `a connection that registers in the background is told so once more, and answers`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), ["com.example.a"]) { statement in
            (statement.state, statement.decider) = (.background, "person")
        }
        let id = try #require(world.coordinator.id(of: ":1.1"))
        #expect(world.states[id] == .background)
        // No caller waits for the changes of this one for more than five seconds.
        world.send(.awaitChanges(1))
        #expect(world.alarm == ChangeRequest.limit)
    }

    @Test func `those who must wait until others have answered go on in time`() throws {
        var world = World()
        for number in 0...CallWindow<Int, Int>.share {
            _ = try world.register(":1.\(number)", World.process(11), ["com.example.a"]) { statement in
                (statement.state, statement.decider) = (.background, "person")
            }
        }
        #expect(world.states.count == CallWindow<Int, Int>.share && world.alarm == ChangeRequest.limit)
    }

    @Test(
        arguments: [
            ([.suspended], .suspended), ([.suspended, .suspended], .suspended),
            ([.suspended, .background], .foreground),
        ] as [([LifecycleState], LifecycleState)]
    )
    func `a new connection is in the state that the others remember, if they agree`(
        states: [LifecycleState],
        expected: LifecycleState
    ) throws {
        var world = World()
        for (number, state) in states.enumerated() {
            _ = try world.register(":1.\(number)", World.process(7), ["com.example.a"]) { statement in
                (statement.state, statement.decider) = (state, "person")
            }
        }
        _ = try world.register(":1.9", World.process(7), ["com.example.a"])
        let id = try #require(world.coordinator.id(of: ":1.9"))
        #expect(world.coordinator.directory[id]?.decision.state == expected)
    }

    @Test(arguments: [true, false])
    func `a connection that registers again passes on its socket, or keeps it`(isFirst: Bool) throws {
        var world = World()
        for hasSocket in [isFirst, !isFirst] {
            let newcomer = Newcomer(
                name: ":1.1",
                user: 1_000,
                process: Newcomer.ProcessFacts(id: World.process(11), application: ""),
                hasSocket: hasSocket,
                statement: Newcomer.Statement(Subjects(names: ["com.example.a"]))
            )
            world.send(.register(world.call(), newcomer))
        }
        let id = try #require(world.coordinator.id(of: ":1.1"))
        #expect(world.coordinator.directory[id]?.hasSocket == true)
    }
}

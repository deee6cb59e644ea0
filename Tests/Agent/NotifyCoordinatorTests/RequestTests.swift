// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// Who may ask for what, for whom it counts, and what is said if it takes too long.
@Suite struct RequestTests {
    private static let own: UInt32 = 1_000
    private static let other: UInt32 = 2_000

    /// Two processes of an application, each of another user; and one more of the first user.
    private func makeWorld(_ change: (inout Coordinator.Configuration) -> Void = { _ in }) throws -> World {
        var configuration = Coordinator.Configuration()
        change(&configuration)
        var world = World(configuration)
        for (number, user): (Int32, UInt32) in [(11, Self.own), (12, Self.other)] {
            let process = World.process(number, user: user)
            _ = try world.register(":1.\(number)", process, ["com.example.a"], application: "org.example.App")
        }
        _ = try world.register(":1.13", World.process(13), ["com.example.a"], application: "org.example.Other")
        world.settle()
        return world
    }

    private func request(
        _ world: inout World,
        _ target: String,
        _ state: LifecycleState,
        by caller: Caller,
        freezes: Bool = false,
        strangers: Set<ProcessID> = []
    ) throws -> CallID {
        let call = world.call()
        let target = try #require(Target(target))
        world.send(.setState(call, by: caller, target, state, freezes: freezes, strangers: strangers))
        world.settle()
        return call
    }

    private func release(_ world: inout World, _ target: String?, by caller: Caller) -> CallID {
        let call = world.call()
        world.send(.release(call, by: caller, target.flatMap { Target($0) }))
        world.settle()
        return call
    }

    private func state(_ world: World, _ name: String) -> LifecycleState? {
        world.coordinator.id(of: name).flatMap { world.coordinator.entry(of: $0)?.state }
    }

    @Test func `a user changes only what belongs to it, and root everything`() throws {
        var world = try makeWorld()
        for target in [":1.12", "pid:12"] {
            let call = try request(&world, target, .background, by: Caller(user: Self.own))
            #expect(world.refusals[call]?.kind == .accessDenied)
            let undo = release(&world, target, by: Caller(user: Self.own))
            #expect(world.refusals[undo]?.kind == .accessDenied)
        }
        #expect(state(world, ":1.12") == .foreground)
        let byRoot = try request(&world, "pid:12", .background, by: Caller(user: 0))
        #expect(world.answers[byRoot] == .connections(1) && state(world, ":1.12") == .background)
        let byOwner = try request(&world, ":1.12", .suspended, by: Caller(user: Self.other))
        #expect(world.answers[byOwner] == .connections(1) && state(world, ":1.12") == .suspended)
        let nobody = try request(&world, "pid:99", .background, by: Caller(user: 0))
        #expect(world.refusals[nobody]?.kind == .noSuchTarget)
    }

    @Test func `of an application that others run too, only the caller's own part is meant`() throws {
        var world = try makeWorld()
        let call = try request(&world, "app:org.example.App", .background, by: Caller(user: Self.own))
        #expect(world.answers[call] == .connections(1))
        #expect(state(world, ":1.11") == .background && state(world, ":1.12") == .foreground)
        #expect(state(world, ":1.13") == .foreground)
        let stranger = try request(&world, "app:org.example.App", .background, by: Caller(user: 3_000))
        #expect(world.refusals[stranger]?.kind == .accessDenied)
        let root = release(&world, "app:org.example.App", by: Caller(user: 0))
        #expect(world.answers[root] == .connections(2) && state(world, ":1.11") == .foreground)
    }

    @Test func `of a process that has connections as two users, neither may change a part`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(7, user: Self.own), ["com.example.a"])
        _ = try world.register(":1.2", World.process(7, user: Self.other), ["com.example.a"])
        let call = try request(&world, "pid:7", .background, by: Caller(user: Self.own))
        #expect(world.refusals[call]?.kind == .accessDenied && state(world, ":1.1") == .foreground)
    }

    @Test func `no caller takes an exempt application out of the foreground`() throws {
        var world = try makeWorld { $0.exemptApplications = ["org.example.App"] }
        for state: LifecycleState in [.background, .suspended] {
            let call = try request(&world, "pid:11", state, by: Caller(user: 0))
            #expect(world.refusals[call]?.kind == .accessDenied)
        }
        let call = try request(&world, "pid:11", .foreground, by: Caller(user: 0))
        #expect(world.answers[call] == .connections(1))
        let other = try request(&world, "pid:13", .background, by: Caller(user: 0))
        #expect(world.answers[other] == .connections(1))
    }

    @Test func `what is frozen is suspended, may be stopped, and belongs to the caller alone`() throws {
        var world = try makeWorld { $0.untouchables = [13] }
        let caller = Caller(user: Self.own)
        for state: LifecycleState in [.background, .foreground] {
            let call = try request(&world, "pid:11", state, by: caller, freezes: true)
            #expect(world.refusals[call]?.kind == .invalidArguments)
        }
        let untouchable = try request(&world, "pid:13", .suspended, by: caller, freezes: true)
        #expect(world.refusals[untouchable]?.kind == .invalidArguments)
        let process = World.process(11)
        let stranger = try request(&world, "pid:11", .suspended, by: caller, freezes: true, strangers: [process])
        #expect(world.refusals[stranger]?.kind == .accessDenied)
        #expect(world.still.isEmpty && state(world, ":1.11") == .foreground)
        let call = try request(&world, "pid:11", .suspended, by: caller, freezes: true)
        #expect(world.answers[call] == .connections(1) && world.still == [process])
        // A process that has connections as another user is stopped with them, so it is not the caller's alone.
        _ = try world.register(":1.5", World.process(15, user: Self.own), ["com.example.a"])
        _ = try world.register(":1.6", World.process(15, user: Self.other), ["com.example.a"])
        let shared = try request(&world, ":1.5", .suspended, by: caller, freezes: true)
        #expect(world.refusals[shared]?.kind == .accessDenied && world.still == [process])
        let byRoot = try request(&world, ":1.5", .suspended, by: Caller(user: 0), freezes: true)
        #expect(world.answers[byRoot] == .connections(2) && world.still.count == 3)
    }

    @Test func `a process whose exit would not be noticed is not frozen`() throws {
        var world = World()
        let call = world.call()
        var facts = Newcomer.ProcessFacts(id: World.process(9))
        facts.isWatched = false
        let newcomer = Newcomer(
            name: ":1.9",
            user: Self.own,
            process: facts,
            hasSocket: true,
            statement: Newcomer.Statement(try Subjects(names: ["com.example.a"], prefixes: []))
        )
        world.send(.register(call, newcomer))
        let frozen = try request(&world, "pid:9", .suspended, by: Caller(user: Self.own), freezes: true)
        #expect(world.refusals[frozen]?.kind == .invalidArguments && world.still.isEmpty)
    }

    @Test func `what was set counts for later connections and processes until it is released`() throws {
        var world = try makeWorld()
        let caller = Caller(user: Self.own)
        _ = try request(&world, "app:org.example.App", .background, by: caller)
        _ = try request(&world, "pid:13", .suspended, by: caller)
        for (number, user): (Int32, UInt32) in [(21, Self.own), (22, Self.other)] {
            let process = World.process(number, user: user)
            _ = try world.register(":1.\(number)", process, ["com.example.a"], application: "org.example.App")
        }
        _ = try world.register(":1.23", World.process(13), ["com.example.a"], application: "org.example.Other")
        world.settle()
        #expect(state(world, ":1.21") == .background && state(world, ":1.22") == .foreground)
        #expect(state(world, ":1.23") == .suspended)
        // Released as one of the application, whatever else is set for that.
        _ = release(&world, "pid:21", by: caller)
        _ = try world.register(":1.31", World.process(21), ["com.example.a"], application: "org.example.App")
        _ = try world.register(":1.32", World.process(32), ["com.example.a"], application: "org.example.App")
        world.settle()
        #expect(state(world, ":1.31") == .foreground && state(world, ":1.32") == .background)
        _ = release(&world, "app:org.example.App", by: caller)
        _ = try world.register(":1.33", World.process(33), ["com.example.a"], application: "org.example.App")
        world.settle()
        #expect(state(world, ":1.32") == .foreground && state(world, ":1.33") == .foreground)
    }

    @Test func `what is set for an application replaces what its user had set for processes of it`() throws {
        var world = try makeWorld()
        _ = try request(&world, "pid:11", .suspended, by: Caller(user: Self.own))
        _ = try request(&world, "pid:12", .suspended, by: Caller(user: Self.other))
        _ = try request(&world, "app:org.example.App", .background, by: Caller(user: Self.own))
        for (number, user): (Int32, UInt32) in [(11, Self.own), (12, Self.other)] {
            let process = World.process(number, user: user)
            _ = try world.register(":1.2\(number)", process, ["com.example.a"], application: "org.example.App")
        }
        world.settle()
        #expect(state(world, ":1.211") == .background && state(world, ":1.212") == .suspended)
    }

    @Test func `a decision on a program ends what it remembers of an earlier agent`() throws {
        var world = World { $0.sources = ["logind"] }
        _ = try world.register(":1.1", World.process(11), ["com.example.a"]) { statement in
            (statement.state, statement.decider) = (.background, "logind")
        }
        world.settle()
        #expect(state(world, ":1.1") == .background)
        _ = try request(&world, ":1.1", .suspended, by: Caller(user: Self.own))
        _ = release(&world, ":1.1", by: Caller(user: Self.own))
        #expect(state(world, ":1.1") == .foreground)
    }

    @Test func `a caller that releases everything releases its own, and root that of all`() throws {
        var world = try makeWorld()
        _ = try request(&world, "app:org.example.App", .background, by: Caller(user: Self.own))
        _ = try request(&world, "app:org.example.App", .background, by: Caller(user: Self.other))
        _ = try request(&world, "pid:13", .background, by: Caller(user: Self.own))
        let call = release(&world, nil, by: Caller(user: Self.own))
        #expect(world.answers[call] == .connections(2))
        #expect(state(world, ":1.11") == .foreground && state(world, ":1.13") == .foreground)
        #expect(state(world, ":1.12") == .background)
        func newcomers(_ first: Int32) throws -> [LifecycleState?] {
            let processes = [World.process(first), World.process(first + 1, user: Self.other), World.process(13)]
            let applications = ["org.example.App", "org.example.App", "org.example.Other"]
            for (process, application) in zip(processes, applications) {
                let name = ":1.\(first)\(process.pid)"
                _ = try world.register(name, process, ["com.example.a"], application: application)
            }
            world.settle()
            return processes.map { state(world, ":1.\(first)\($0.pid)") }
        }
        #expect(try newcomers(41) == [.foreground, .background, .foreground])
        let byRoot = release(&world, nil, by: Caller(user: 0))
        #expect(world.answers[byRoot] == .connections(2))
        #expect(try newcomers(51) == [.foreground, .foreground, .foreground])
        // No connection is left to release, and nothing is left to remember.
        _ = release(&world, "pid:13", by: Caller(user: Self.own))
        let empty = release(&world, nil, by: Caller(user: 0))
        #expect(world.answers[empty] == .connections(0))
        #expect(world.coordinator.directory.processes.values.allSatisfy { !$0.isWorthRemembering })
    }

    @Test func `a change that takes more than five seconds is refused, naming three who hold it up`() throws {
        var world = World()
        for number: Int32 in 1...5 {
            _ = try world.register(
                ":1.\(number)",
                World.process(number),
                ["com.example.a"],
                application: "org.example.App"
            )
        }
        world.settle()
        let call = try world.set("app:org.example.App", .background)
        world.time = ChangeRequest.limit - 1
        world.send(.alarm)
        #expect(world.refusals[call] == nil)
        world.time = ChangeRequest.limit
        world.send(.alarm)
        #expect(
            world.refusals[call]
                == Refusal(
                    .timedOut,
                    "The change did not take effect within 5 seconds for :1.1 (process \(World.process(1))), "
                        + ":1.2 (process \(World.process(2))), :1.3 (process \(World.process(3))) and 2 more."
                )
        )
        // It goes on nevertheless.
        world.settle()
        #expect(state(world, ":1.5") == .background)
        let next = try world.set("pid:2", .foreground)
        world.time = 2 * ChangeRequest.limit
        world.send(.alarm)
        #expect(
            world.refusals[next]?.message
                == "The change did not take effect within 5 seconds for :1.2 (process \(World.process(2)))."
        )
    }

    @Test func `of a call that is over nothing is kept until the alarm, which may never ring`() throws {
        var world = try makeWorld()
        for _ in 0..<100 {
            let call = world.call()
            world.send(.report(call, from: ":1.11", .foreground))
            #expect(world.answers[call] == .done)
        }
        let kept = world.coordinator.requests
        var swept = kept
        _ = swept.takeExpired(now: .max)
        #expect(kept == swept)
    }

    @Test func `a change that waits for a process to be frozen is refused with the process`() throws {
        var world = try makeWorld()
        let call = try world.set("pid:13", .suspended, freezes: true)
        while !world.bus.isEmpty || world.observers.values.contains(where: { !$0.isEmpty }) {
            world.stepBus()
            world.stepObservers()
        }
        #expect(world.still == [World.process(13)] && world.answers[call] == nil)
        world.time = ChangeRequest.limit
        world.send(.alarm)
        #expect(
            world.refusals[call]?.message
                == "The change did not take effect within 5 seconds for process \(World.process(13)), which has yet to "
                + "be frozen."
        )
    }

    @Test func `each change of a state is announced, with what it was before`() throws {
        var world = try makeWorld()
        for state: LifecycleState in [.background, .foreground, .suspended, .suspended] {
            _ = try request(&world, ":1.13", state, by: Caller(user: Self.own))
        }
        #expect(world.announced.map(\.from) == [.foreground, .background, .foreground])
        #expect(world.announced.map(\.to) == [.background, .foreground, .suspended])
        for change in world.announced {
            #expect(change.name == ":1.13" && change.process == World.process(13))
            #expect(change.application == "org.example.Other")
        }
    }

    @Test func `a connection is told who has decided on its state when that changes`() throws {
        var world = try makeWorld()
        let id = try #require(world.coordinator.id(of: ":1.13"))
        let before = world.deciders[id] ?? []
        for state: LifecycleState in [.background, .suspended] {
            _ = try request(&world, ":1.13", state, by: Caller(user: Self.own))
        }
        #expect(world.deciders[id] == before + [.person])
        _ = release(&world, ":1.13", by: Caller(user: Self.own))
        #expect(world.deciders[id] == before + [.person, .rule])
    }

    @Test func `a process is watched while the bus may queue posts for one of its connections`() throws {
        var world = try makeWorld()
        let process = World.process(13)
        func queued() -> Int? { world.coordinator.directory[process: process]?.queued }
        _ = try world.register(":1.14", process, ["com.example.b"])
        #expect(queued() == 2 && world.watched.contains(process))
        world.send(.connectionEnded(try #require(world.coordinator.id(of: ":1.14"))))
        #expect(queued() == 1)
        _ = try request(&world, ":1.13", .background, by: Caller(user: Self.own))
        #expect(queued() == 0 && !world.watched.contains(process))
        _ = try request(&world, ":1.13", .foreground, by: Caller(user: Self.own))
        #expect(queued() == 1 && world.watched.contains(process))
    }

    @Test func `a parked program's change of state is announced too`() throws {
        var world = try makeWorld()
        world.send(.processStopped(World.process(13)))
        world.settle()
        let before = world.announced.count
        for state: LifecycleState in [.background, .background, .suspended] {
            _ = try request(&world, ":1.13", state, by: Caller(user: Self.own))
        }
        #expect(world.announced.dropFirst(before).map(\.to) == [.background, .suspended])
        #expect(world.rules == ["com.example.a"])
    }

    /// It may continue early, and hear through its old connection until that is shut down.
    @Test(arguments: [LifecycleState.background, .suspended], [false, true])
    func `a change is in force once nobody hears through the connection of a stopped program`(
        state: LifecycleState,
        isUnderWay: Bool
    ) throws {
        var world = try makeWorld()
        let process = World.process(13)
        if !isUnderWay { world.send(.processStopped(process)) }
        let call = try world.set(":1.13", state, by: Self.own)
        if isUnderWay { world.send(.processStopped(process)) }
        // The agent's part asks the same before a sleep.
        world.send(.awaitChanges(1))
        while world.kernel.isEmpty { world.stepBus() }
        // The stream is being read.
        #expect(world.answers[call] == nil && world.changesInForce == [])
        world.settle()
        #expect(world.answers[call] == .connections(1) && world.changesInForce == [1])
    }

    @Test func `connections that were put into different states one by one stay so under the next agent`() throws {
        let process = World.process(13)
        var heritage = Heritage()
        var entry = Heritage.Process(process)
        entry.wish = .suspended
        heritage.processes = [entry]
        var connection = Heritage.Connection(process: process)
        (connection.name, connection.person) = (":1.1", .suspended)
        heritage.connections = [connection]
        var world = World()
        world.send(.inherit(heritage, [Newcomer.ProcessFacts(id: process, application: "")]))
        world.settle()
        for (name, state, decider) in [(":1.2", LifecycleState.foreground, "person"), (":1.3", .foreground, "default")]
        {
            _ = try world.register(name, process, ["com.example.a"]) { ($0.state, $0.decider) = (state, decider) }
        }
        // It knows of no earlier agent.
        _ = try world.register(":1.4", process, ["com.example.a"])
        world.settle()
        let states = (1...4).map { self.state(world, ":1.\($0)") }
        #expect(states == [.suspended, .foreground, .foreground, .suspended])
        // From here on it is this agent's.
        _ = try request(&world, "pid:13", .background, by: Caller(user: Self.own))
        _ = try world.register(":1.5", process, ["com.example.a"]) { ($0.state, $0.decider) = (.foreground, "person") }
        world.settle()
        #expect(self.state(world, ":1.5") == .background)
    }

    @Test func `what a program has reported counts under the next agent once a person has released it`() throws {
        let process = World.process(13)
        var world = World()
        _ = try world.register(":1.1", process, ["com.example.a"])
        world.settle()
        let report = world.call()
        world.send(.report(report, from: ":1.1", .background))
        _ = try request(&world, "pid:13", .foreground, by: Caller(user: Self.own))
        let heritage = world.coordinator.heritage
        var next = World()
        next.send(.inherit(heritage, [Newcomer.ProcessFacts(id: process, application: "")]))
        _ = try next.register(":1.1", process, ["com.example.a"]) { ($0.state, $0.decider) = (.foreground, "person") }
        next.settle()
        #expect(state(next, ":1.1") == .foreground)
        _ = release(&next, "pid:13", by: Caller(user: Self.own))
        #expect(state(next, ":1.1") == .background)
        next.send(.processEnded(process))
        #expect(next.coordinator.heritage.processes.isEmpty)
        // One that was left nothing learns it from the registration.
        var later = World()
        _ = try later.register(":1.1", process, ["com.example.a"]) {
            ($0.state, $0.decider, $0.reported, $0.previous) = (.suspended, "person", .background, ":1.1")
        }
        later.settle()
        #expect(state(later, ":1.1") == .suspended)
        _ = release(&later, "pid:13", by: Caller(user: Self.own))
        #expect(state(later, ":1.1") == .background)
    }

    @Test func `what was set for an application is forgotten with its last process`() throws {
        var world = try makeWorld()
        _ = try request(&world, "app:org.example.Other", .background, by: Caller(user: Self.own))
        _ = try world.register(":1.14", World.process(14), application: "org.example.Other")
        world.settle()
        #expect(state(world, ":1.14") == .background)
        for name in [":1.13", ":1.14"] {
            world.send(.connectionEnded(try #require(world.coordinator.id(of: name))))
        }
        _ = try world.register(":1.15", World.process(15), application: "org.example.Other")
        world.settle()
        #expect(state(world, ":1.15") == .foreground)
    }

    @Test func `every connection is listed, and counted by its state`() throws {
        var world = try makeWorld()
        #expect(world.coordinator.totals.observers == 3 && world.coordinator.totals.processes == 3)
        #expect(world.coordinator.totals.foreground == 3 && world.coordinator.totals.held == 0)
        _ = try request(&world, "pid:11", .background, by: Caller(user: 0))
        _ = try request(&world, "pid:12", .suspended, by: Caller(user: 0))
        _ = try world.register(":1.14", World.process(13), prefixes: ["com.example.b."])
        var totals = world.coordinator.totals
        #expect(totals.observers == 4 && totals.processes == 3 && totals.parked == 0 && totals.held == 1)
        #expect(totals.foreground == 2 && totals.background == 1 && totals.suspended == 1)
        #expect(world.coordinator.list.map(\.name) == [":1.11", ":1.12", ":1.13", ":1.14"])
        let entry = try #require(world.coordinator.list.first)
        #expect(entry.state == .background && entry.decider == .person && entry.user == Self.own)
        #expect(entry.application == "org.example.App" && !entry.isParked && !entry.hasFocus && entry.pending == 0)
        world.send(.posted("com.example.a"))
        #expect(world.coordinator.list.map(\.pending) == [0, 1, 0, 0])
        world.send(.processStopped(World.process(13)))
        world.settle()
        totals = world.coordinator.totals
        #expect(totals.parked == 2 && totals.suspended == 3 && totals.held == 2)
        #expect(world.coordinator.list.map(\.isParked) == [false, false, true, true])
    }
}

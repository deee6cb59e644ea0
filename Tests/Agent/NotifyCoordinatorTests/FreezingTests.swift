// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

@Suite struct FreezingTests {
    @Test func `a resume before the process has stopped leaves it running`() throws {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<(isLongRun ? 10_000 : 400) {
            var world = World()
            let process = World.process(7)
            for number in 0..<Int.random(in: 1...3, using: &random) {
                _ = try world.register(":1.\(number)", process, ["com.example.\(number)"])
            }
            world.settle()
            var calls: [CallID] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let isWhole = Bool.random(using: &random)
                calls.append(try world.set(isWhole ? "pid:7" : ":1.0", .suspended, freezes: true))
                for _ in 0..<Int.random(in: 0...6, using: &random) { world.step(using: &random) }
                calls.append(try world.set("pid:7", Bool.random(using: &random) ? .foreground : .background))
                for _ in 0..<Int.random(in: 0...6, using: &random) { world.step(using: &random) }
            }
            world.settle(using: &random)
            #expect(world.still.isEmpty)
            #expect(calls.allSatisfy { world.answers[$0] != nil })
        }
    }

    @Test func `the call that freezes a process is answered when the process has stopped, and not earlier`() throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        let call = try world.set("pid:7", .suspended, freezes: true)
        #expect(world.still.isEmpty)
        world.settle()
        #expect(world.still == [process] && world.answers[call] == .connections(1))
        let resumed = try world.set("pid:7", .foreground)
        world.settle()
        #expect(world.still.isEmpty && world.answers[resumed] == .connections(1))
    }

    /// A service is asked about before it is frozen, and its last connection may end meanwhile.
    @Test func `a process that was forgotten while it was being frozen, and has come back, is thawed`() {
        var freezing = Freezing()
        #expect(freezing.froze("it has ended").isEmpty)
        #expect(freezing.froze(nil) == [.thaw])
        #expect(freezing.froze(nil).isEmpty)
        freezing.thawed(nil)
        #expect(freezing.step == .running)
    }

    @Test func `a caller that has a frozen process frozen once more is answered at once`() throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        _ = try world.set("pid:7", .suspended, freezes: true)
        world.settle()
        let call = try world.set("pid:7", .suspended, freezes: true)
        world.settle()
        #expect(world.still == [process] && world.answers[call] == .connections(1))
    }

    @Test func `a process is watched again if it could not be frozen, and has gone on meanwhile`() throws {
        var world = World()
        world.freezeOutcome = .denied
        let process = World.process(7)
        func goOn() {
            for _ in 0..<10 {
                world.stepBus()
                world.stepObservers()
            }
        }
        _ = try world.register(":1.1", process, ["com.example.a"])
        #expect(world.watched == [process])
        _ = try world.set("pid:7", .suspended, freezes: true)
        goOn()
        _ = try world.set("pid:7", .foreground)
        goOn()
        #expect(world.watched.isEmpty && world.kernel.count == 1)
        world.settle()
        #expect(world.watched == [process])
    }

    @Test func `a released process continues, even if its own report keeps it suspended`() throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        world.send(.report(world.call(), from: ":1.1", .suspended))
        world.settle()
        _ = try world.set("pid:7", .suspended, freezes: true)
        world.settle()
        #expect(world.still == [process])
        let call = world.call()
        world.send(.release(call, by: Caller(user: 1000), Target("pid:7")))
        world.settle()
        #expect(world.still.isEmpty && world.answers[call] == .connections(1))
        #expect(world.states.values.allSatisfy { $0 == .suspended } && world.coordinator.totals.suspended == 1)
    }

    @Test func `a process that is resumed and frozen again while it is being stopped learns both`() throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        world.send(.report(world.call(), from: ":1.1", .suspended))
        world.settle()
        let calls = [
            try world.set("pid:7", .suspended, freezes: true), try world.set("pid:7", .foreground),
            try world.set("pid:7", .suspended, freezes: true),
        ]
        world.settle()
        #expect(calls.allSatisfy { world.answers[$0] == .connections(1) })
        #expect(world.still == [process] && world.coordinator.totals.suspended == 1)
    }

    @Test func `a connection that a process had begun before it was frozen is suspended with it`() throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        _ = try world.set("pid:7", .suspended, freezes: true)
        world.settle()
        _ = try world.register(":1.2", process, ["com.example.b"])
        world.settle()
        let call = try world.set("pid:7", .suspended)
        world.settle()
        #expect(world.still == [process] && world.answers[call] == .connections(2))
        #expect(world.coordinator.totals.suspended == 2)
    }

    @Test func `a process that adds a name just before it is frozen is frozen once the name is held`() throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        world.settle()
        let call = try world.set("pid:7", .suspended, freezes: true)
        // The names are held and the mark is reached, but the observer has not answered yet.
        while !world.bus.isEmpty { world.stepBus() }
        let addition = world.call()
        world.send(.addNames(addition, from: ":1.1", try Subjects(names: ["com.example.b"], prefixes: [])))
        world.stepObservers()
        #expect(world.still.isEmpty && world.answers[addition] == nil)
        world.settle()
        #expect(world.answers[addition] == .done && world.answers[call] == .connections(1))
        #expect(world.still == [process])
    }

    @Test func `a process that registers again just before it is frozen is frozen once its names are held`() throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        world.settle()
        let call = try world.set("pid:7", .suspended, freezes: true)
        while !world.bus.isEmpty { world.stepBus() }
        let renewal = try world.register(":1.1", process, ["com.example.a", "com.example.b"])
        world.stepObservers()
        #expect(world.still.isEmpty && world.answers[renewal] == nil)
        world.settle()
        #expect(world.answers[renewal] != nil && world.answers[call] == .connections(1))
        #expect(world.still == [process])
    }

    @Test func `a change that another one overtakes while its process is parked is answered with it`() throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        world.settle()
        let first = try world.set("pid:7", .suspended)
        world.send(.processStopped(process))
        let second = try world.set("pid:7", .background)
        world.settle()
        #expect(world.answers[first] == .connections(1) && world.answers[second] == .connections(1))
        #expect(world.coordinator.totals.background == 1)
    }

    @Test func `a new connection of a process that must be stopped is suspended with it`() throws {
        var world = World()
        let process = World.process(7)
        _ = try world.register(":1.1", process, ["com.example.a"])
        _ = try world.set(":1.1", .suspended, freezes: true)
        let call = try world.register(":1.2", process, ["com.example.b"])
        world.settle()
        #expect(world.still == [process])
        #expect(world.answers[call] == .registered(.suspended, pending: [], isComplete: false))
    }

    @Test func `a process that may no longer be stopped continues, and the caller gets an error`() throws {
        var world = World()
        world.freezeOutcome = .denied
        _ = try world.register(":1.1", World.process(7), ["com.example.a"])
        let call = try world.set("pid:7", .suspended, freezes: true)
        world.settle()
        #expect(world.still.isEmpty && world.refusals[call]?.kind == .failed)
        #expect(world.coordinator.totals.suspended == 1)
    }

    @Test func `an agent that ends lets everything continue`() throws {
        var world = World()
        for number in 1...3 {
            _ = try world.register(":1.\(number)", World.process(Int32(number + 10)), ["com.example.a"])
            _ = try world.set("pid:\(number + 10)", .suspended, freezes: true)
        }
        world.settle()
        #expect(world.still.count == 3)
        world.send(.ending(keeping: []))
        #expect(world.still.isEmpty)
    }

    @Test func `a process whose last connection leaves does not stay stopped`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(7), ["com.example.a"])
        _ = try world.set(":1.1", .suspended, freezes: true)
        world.settle()
        let id = try #require(world.coordinator.id(of: ":1.1"))
        world.send(.connectionEnded(id))
        world.settle()
        #expect(world.still.isEmpty && world.coordinator.processes.isEmpty)
    }
}

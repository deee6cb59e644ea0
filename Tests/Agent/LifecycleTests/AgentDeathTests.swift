// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import NotifyCore
import TestSupport
import Testing

/// Most tests need no more than the core.
private typealias NotifyCenter = NotifyCore.NotifyCenter
private typealias NotifyBusError = NotifyCore.NotifyBusError

@Suite struct AgentDeathTests {
    @Test(arguments: busKinds)
    func `an observer keeps its state when the agent is killed and comes back`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, poster) = (agent.makeCenter(), agent.makeCenter())
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        let name = try center.observingName()
        for _ in 0..<5 {
            // Where it takes longer than 2 seconds until there is another agent, the gate opens.
            var state: String?
            let isInTime = try waitUntil {
                try agent.set(name, .background)
                let began = ContinuousClock.now
                try agent.killAgent()
                try agent.restartAgent()
                try #require(waitUntil { (try? agent.state(of: name)) != nil })
                state = try agent.state(of: name)
                return state == "background" || ContinuousClock.now - began < .seconds(2)
            }
            guard isInTime else { return print("This machine is too busy to start an agent within 2 seconds.") }
            try #require(state == "background")
            try poster.postOnceConnected("com.example.x")
            try poster.synchronize(timeout: .patience)
        }
        try agent.set(name, .foreground)
        try poster.postOnceConnected("com.example.x")
        #expect(heard.wait(for: 1))
        try center.barrier(timeout: .patience)
        #expect(heard.value == 1)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `what a program has reported counts once it is released, if the agent was killed too`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let center = agent.makeCenter()
        let observation = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { _ in }
        defer { observation.cancel() }
        let name = try center.observingName()
        try center.lifecycle.report(.background, timeout: .patience)
        let isInTime = try waitUntil {
            try agent.set(name, .suspended)
            let began = ContinuousClock.now
            try agent.killAgent()
            try agent.restartAgent()
            try #require(waitUntil { (try? agent.state(of: name)) != nil })
            return try agent.state(of: name) == "suspended" || ContinuousClock.now - began < .seconds(2)
        }
        guard isInTime else { return print("This machine is too busy to start an agent within 2 seconds.") }
        #expect(try agent.state(of: name) == "suspended")
        try agent.release(name)
        try #require(waitUntil(timeout: .patience) { try agent.state(of: name) == "background" })
    }

    @Test(arguments: busKinds)
    func `without an agent for 2 seconds observers open their gates`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, poster) = (agent.makeCenter(), agent.makeCenter())
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        try agent.set(try center.observingName(), .background)
        try agent.killAgent()
        try #require(waitUntil(timeout: .patience) { center.lifecycle.state == .foreground })
        try poster.postOnceConnected("com.example.x")
        #expect(heard.wait(for: 1))
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `an agent that is killed at any moment of a transition loses no state and no name`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, poster) = (agent.makeCenter(), agent.makeCenter())
        let heard = Recorder<String>()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) {
            heard.append($0.string)
        }
        let name = try center.observingName()
        var generator = SystemRandomNumberGenerator()
        for round in 0..<20 {
            let states: [LifecycleState] = [.background, .suspended, .foreground]
            let finished = Counter()
            startThread { [agent] in
                // Happens somewhere in the middle of what follows.
                _ = try? agent.trySetting(name, states[round % 3])
                finished.add()
            }
            for _ in 0..<Int.random(in: 0..<200, using: &generator) { sched_yield() }
            try agent.killAgent()
            try agent.restartAgent()
            _ = finished.wait(for: 1, timeout: .patience)
            try #require(waitUntil { (try? agent.state(of: name)) != nil })

            // The promises hold again: background drops, foreground delivers.
            try agent.set(name, .background)
            try center.barrier(timeout: .patience)
            let before = heard.count
            try poster.postOnceConnected("com.example.x")
            try poster.synchronize(timeout: .patience)
            try agent.set(name, .foreground)
            try poster.postOnceConnected("com.example.x")
            try #require(heard.wait(forCount: before + 1, timeout: .patience))
            try center.barrier(timeout: .patience)
            #expect(heard.count == before + 1)
        }
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `nobody waits for the agent after the center is closed`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        kill(agent.agentProcess, SIGSTOP)
        defer { kill(agent.agentProcess, SIGCONT) }
        for round in 0..<20 {
            let center = NotifyBus.NotifyCenter(bus: .address(agent.bus.address))
            let outcomes = Recorder<NotifyBus.NotifyBusError.Code?>()
            func ask(_ question: @escaping @Sendable () async throws(NotifyBus.NotifyBusError) -> Void) {
                Task {
                    do throws(NotifyBus.NotifyBusError) {
                        try await question()
                        outcomes.append(nil)
                    } catch {
                        outcomes.append(error.code)
                    }
                }
            }
            ask { () async throws(NotifyBus.NotifyBusError) in try await center.lifecycle.report(.background) }
            ask { () async throws(NotifyBus.NotifyBusError) in try await center.lifecycle.setFollowsDesktop(true) }
            // At any moment of that.
            usleep(UInt32(round * 200))
            try? center.close(timeout: nil)
            try #require(outcomes.wait(forCount: 2, timeout: .patience))
            #expect(outcomes.elements == [.closed, .closed])
        }
    }

    @Test(arguments: busKinds)
    func `the return of the bus is reported also if an observer is cancelled meanwhile`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let changes = Recorder<NotifyCenter.ConnectionChange>()
        let center = NotifyCenter(bus: .address(agent.bus.address)) { changes.append($0) }
        let first = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { _ in }
        let second = try center.addObserver(for: "com.example.b", timeout: .seconds(25)) { _ in }
        // The observers wait for it.
        kill(agent.agentProcess, SIGSTOP)
        defer { kill(agent.agentProcess, SIGCONT) }
        center.perform { link in shutdown(link.descriptor, Int32(SHUT_RDWR)) }
        try #require(changes.wait(forCount: 1))
        try #require(waitUntil { (try? center.barrier(timeout: .seconds(5))) != nil })
        second.cancel()
        try center.barrier(timeout: .patience)
        kill(agent.agentProcess, SIGCONT)
        try #require(changes.wait(forCount: 2))
        #expect(changes.elements.last == .connected && center.statistics.reconnects == 1)
        first.cancel()
    }
}

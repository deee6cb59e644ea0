// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import NotifyCore
import TestSupport
import Testing

/// Most tests need no more than the core.
private typealias NotifyCenter = NotifyCore.NotifyCenter
private typealias NotifyName = NotifyCore.NotifyName

/// A program that follows the desktop through the library. LockTests covers the screen lock.
@Suite struct DesktopTests {
    /// This test acts as the desktop.
    private func setForeground(_ agent: AgentBus, _ desktop: RawBusClient, _ pid: pid_t) throws {
        var body = RawBody()
        body.append(UInt32(pid))
        let reply = try desktop.call(
            destination: AgentInterface.name,
            path: AgentInterface.path,
            interface: AgentInterface.name,
            member: "SetForeground",
            signature: "u",
            body: body.bytes
        )
        try #require(reply.kind == .reply)
    }

    @Test(arguments: busKinds)
    func `a center that follows the desktop hears posts only in front, also under a new agent`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        var desktop = try RawBusClient(address: agent.bus.address)
        let center = agent.makeCenter()
        let heard = Recorder<NotifyName>()
        let observation = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { heard.append($0) }
        #expect(!center.lifecycle.followsDesktop)
        try setForeground(agent, desktop, 1)
        // It has not opted in.
        try center.postOnceConnected("com.example.a")
        #expect(heard.wait(forCount: 1))
        try center.lifecycle.setFollowsDesktop(true) { _ in }
        #expect(center.lifecycle.followsDesktop)
        #expect(waitUntil { center.lifecycle.state == .background })
        try setForeground(agent, desktop, getpid())
        #expect(waitUntil { center.lifecycle.state == .foreground })

        try agent.killAgent()
        try agent.restartAgent()
        desktop = try RawBusClient(address: agent.bus.address)
        #expect(try waitUntil { try agent.list().count == 1 })
        try setForeground(agent, desktop, 1)
        #expect(waitUntil { center.lifecycle.state == .background })
        // The program's own report overrides the focus.
        try center.lifecycle.report(.foreground, timeout: .seconds(10))
        #expect(center.lifecycle.state == .foreground)
        // A person overrides both: the report is recorded, and nothing changes.
        try agent.set("pid:\(getpid())", .background)
        try center.lifecycle.report(.foreground, timeout: .seconds(10))
        #expect(center.lifecycle.state == .background)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `opting in returns when the agent has noted it, and also if there is none`(kind: BusKind) async throws {
        let agent = try AgentBus(kind)
        let desktop = try RawBusClient(address: agent.bus.address)
        let center = NotifyBus.NotifyCenter(bus: .address(agent.bus.address))
        let observation = try await center.addObserver(for: "com.example.a") { _ in }
        try setForeground(agent, desktop, 1)
        // The agent takes its time to note the focus.
        try await center.lifecycle.setFollowsDesktop(true)
        #expect(try waitUntil { try agent.list().first?["decider"]?.string == "shell" })
        for follows in [false, true] {
            try await center.lifecycle.setFollowsDesktop(follows)
            // The next call that the agent answers finds that the desktop decides; the program follows a moment later.
            let deciders = try agent.list().map { $0["decider"]?.string }
            #expect(deciders == [follows ? "shell" : "default"])
            #expect(
                try waitUntil { try agent.list().first?["state"]?.string == (follows ? "background" : "foreground") }
            )
        }
        try agent.killAgent()
        try await center.lifecycle.setFollowsDesktop(true)
        #expect(center.lifecycle.followsDesktop)
        await center.close()
        let error = await #expect(throws: NotifyBus.NotifyBusError.self) {
            try await center.lifecycle.setFollowsDesktop(false)
        }
        #expect(error?.code == .closed)
        withExtendedLifetime(observation) {}
    }

    @Test(arguments: busKinds)
    func `a center may opt in before its first observer`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let center = agent.makeCenter()
        try center.lifecycle.setFollowsDesktop(true) { _ in }
        let observer = try RawBusClient(address: agent.bus.address)
        try setForeground(agent, observer, 1)
        let observation = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { _ in }
        #expect(waitUntil { center.lifecycle.state == .background })
        try center.lifecycle.setFollowsDesktop(false) { _ in }
        #expect(waitUntil { center.lifecycle.state == .foreground })
        observation.cancel()
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyProtocol
import TestSupport
import Testing

/// An agent that starts programs for names has asked the bus who posted before the poster leaves it.
@Suite struct PosterEndTests {
    private func makeAgent(on bus: PrivateBus) throws -> FakeAgent {
        try FakeAgent(on: bus, owning: AgentInterface.launcherName) { _ in .reply([]) }
    }

    @Test(arguments: busKinds)
    func `a poster of lines waits for the agent, too`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try makeAgent(on: bus)
        let poster = try start(productPath("notify-post"), ["--address", bus.address, "-v", "-"])
        for line in ["com.example.a\n", "com.example.b\n", "no name \n"] { try poster.writeInput(line) }
        poster.closeInput()
        let end = try poster.wait()
        #expect(end.status == 1 && end.errorOutput.hasSuffix("notify-post: posted 2 names\n"), "\(end)")
        #expect(agent.calls.count == 1)
    }

    @Test(.enabled(if: Stranger.unavailable == nil, "\(Stranger.unavailable ?? "")"), arguments: busKinds)
    func `a poster that fails at a name waits for those before it`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try makeAgent(on: bus)
        let names = ["com.example.a", "user.uid.0", "com.example.b"]
        let command = ["setpriv", "--reuid=\(Stranger.nobody)", "--regid=\(Stranger.nobody)", "--clear-groups", "--"]
        let end = try start(product: "notify-post", ["--address", bus.address] + names, by: command, input: .null)
            .wait()
        #expect(end.status == 1 && end.errorOutput.contains("user.uid.0"), "\(end)")
        #expect(agent.calls.count == 1)
    }

    /// One that posts faster than the bus reads has them.
    @Test(arguments: busKinds)
    func `a poster that has threads waits for the agent, too`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try makeAgent(on: bus)
        let center = bus.makeCenter()
        let observation = try center.addObserver(for: "com.example.other", timeout: .patience) { _ in }
        try center.postOnceConnected("com.example.a")
        #expect(try center.synchronizeToEnd(timeout: .patience))
        #expect(agent.calls.elements.count(where: { $0.member == "Ping" }) == 1)
        observation.cancel()
    }
}

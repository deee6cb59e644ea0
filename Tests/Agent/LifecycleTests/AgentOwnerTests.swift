// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// On a bus with several users anybody may own the agent's name. Observers obey only root and their own user.
@Suite(.enabled(if: Stranger.unavailable == nil, "Only root can connect as another user."))
struct AgentOwnerTests {
    private func takeName(_ client: RawBusClient) throws {
        var body = RawBody()
        body.append(AgentInterface.name)
        // ALLOW_REPLACEMENT, REPLACE_EXISTING
        body.append(UInt32(1 | 2))
        let answer = try client.callBus("RequestName", signature: "su", body: body.bytes)
        try #require(answer.uint32 == 1, "\(answer)")
    }

    /// The calls that a client has received so far.
    private func calls(to client: RawBusClient) throws -> [String] {
        try client.callBus("GetId")
        var members: [String] = []
        while let message = try? client.readMessage(timeout: .zero) {
            if message.kind == .call { members.append(message.member ?? "") }
        }
        return members
    }

    @Test(arguments: busKinds)
    func `a stranger that owns the agent's name learns nothing, gets no socket, and is not obeyed`(kind: BusKind) throws
    {
        let bus = try PrivateBus(kind)
        let stranger = try Stranger(address: bus.address, .stays)
        try takeName(stranger.client)
        let center = NotifyCenter(bus: .address(bus.address))
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        let order = try stranger.client.call(
            destination: try center.observingName(),
            path: ObserverInterface.path,
            interface: ObserverInterface.name,
            member: "SetState",
            signature: "s",
            body: RawBusClient.stringBody("background")
        )
        #expect(order.errorName == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(center.lifecycle.state == .foreground)
        try center.postOnceConnected("com.example.x")
        #expect(heard.wait(for: 1))
        #expect(try calls(to: stranger.client) == [])

        // When a legitimate agent takes the name, observers register with it. A stranger that takes the name away gets
        // nothing.
        let rightful = try RawBusClient(address: bus.address, passesDescriptors: true)
        try takeName(rightful)
        while try rightful.readMessage().member != AgentInterface.Register.member {}
        try takeName(stranger.client)
        let later = try center.addObserver(for: "com.example.y", timeout: .seconds(25)) { _ in heard.add() }
        try center.postOnceConnected("com.example.y")
        #expect(heard.wait(for: 2))
        #expect(try calls(to: stranger.client) == [])
        observation.cancel()
        later.cancel()
    }

    @Test(arguments: busKinds)
    func `an agent of the observer's own user is obeyed, whichever user that is`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try Stranger(address: bus.address, .stays)
        try takeName(agent.client)
        let ids = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
        let observer = try start(
            "setpriv",
            ids + [productPath("notify-wait"), "--address", bus.address, "-fv", "com.example.x"]
        )
        while try agent.client.readMessage().member != AgentInterface.Register.member {}
        observer.send(signal: SIGKILL)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What a program in a sandbox can do to others, by any means: nothing.
@Suite(.enabled(if: FlatpakSandbox.obstacle == nil, "\(FlatpakSandbox.obstacle ?? "")"))
struct IsolationTests {
    private static let calls: [(member: String, signature: String, body: [UInt8])] = {
        var target = RawBody()
        for text in ["pid:1", "suspended"] { target.append(text) }
        target.append(UInt32(1))
        return [
            ("SetState", "ssb", target.bytes), ("Release", "s", RawBusClient.stringBody("")),
            ("SetForeground", "u", [1, 0, 0, 0]), ("List", "", []), ("Status", "", []), ("OpenRelay", "", []),
            ("SetNaps", "b", [1, 0, 0, 0]),
        ]
    }()

    /// The owner of a name.
    private func owner(of name: String, _ client: RawBusClient) throws -> String {
        let reply = try client.callBus("GetNameOwner", signature: "s", body: RawBusClient.stringBody(name))
        return try #require(reply.string)
    }

    @Test(arguments: busKinds)
    func `the permission for the relay gives no access to the agent`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let outside = try RawBusClient(address: scene.bus.address)
        let inside = try RawBusClient(address: sandbox.busAddress)
        let relay = try owner(of: "org.notifybus.Relay1", outside)
        let agent = try owner(of: "org.notifybus.Agent1", outside)
        #expect(relay != agent)
        // It observes, so that the relay knows it.
        let registered = try inside.call(
            destination: "org.notifybus.Relay1",
            path: "/org/notifybus/Relay1",
            interface: "org.notifybus.Relay1",
            member: "Register",
            signature: "a{sv}",
            body: [0, 0, 0, 0, 0, 0, 0, 0]
        )
        #expect(registered.kind == .reply, "\(registered.string ?? "")")
        for destination in [relay, "org.notifybus.Relay1", agent, "org.notifybus.Agent1"] {
            for service in ["Agent1", "Relay1"] {
                for call in IsolationTests.calls {
                    let reply = try inside.call(
                        destination: destination,
                        path: "/org/notifybus/\(service)",
                        interface: "org.notifybus.\(service)",
                        member: call.member,
                        signature: call.signature,
                        body: call.body
                    )
                    #expect(reply.kind == .error, "\(destination) answers \(call.member) of \(service)")
                }
            }
        }
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `not even the permission for the agent lets it change others, or see who observes`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox(talkingTo: ["org.notifybus.Agent1", "org.notifybus.Relay1"])
        let inside = try RawBusClient(address: sandbox.busAddress)
        for call in IsolationTests.calls where !["Status", "OpenRelay"].contains(call.member) {
            let reply = try inside.call(
                destination: "org.notifybus.Agent1",
                path: "/org/notifybus/Agent1",
                interface: "org.notifybus.Agent1",
                member: call.member,
                signature: call.signature,
                body: call.body
            )
            #expect(reply.errorName == "org.freedesktop.DBus.Error.AccessDenied", "\(call.member): \(reply)")
        }
        withExtendedLifetime(sandbox) {}
    }

    @Test(.serialized, arguments: busKinds)
    func `it can set the state of a name that it observes, and of no other`(kind: BusKind) async throws {
        try handOver(kind.rawValue, to: "name-state")
        await #expect(processExitsWith: .success) {
            let kind = try BusKind.handedOver(to: "name-state")
            setenv("NOTIFYBUS_RELAY", "yes", 1)
            let scene = try RelayScene(kind)
            let sandbox = try scene.makeSandbox()
            let center = NotifyCenter(bus: .address(sandbox.busAddress))
            let own = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { _ in }
            try center.setState(7, of: "com.example.a", timeout: .patience)
            #expect(try center.state(of: "com.example.a", timeout: .patience) == 7)
            // An observer outside keeps the other name, or there would be no state to set.
            let foreign = try scene.poster.addObserver(for: "com.example.b", timeout: .seconds(25)) { _ in }
            try scene.poster.setState(1, of: "com.example.b", timeout: .patience)
            #expect(throws: AgentError.self) { try center.setState(7, of: "com.example.b") }
            #expect(try scene.poster.state(of: "com.example.b", timeout: .patience) == 1)
            foreign.cancel()
            own.cancel()
            withExtendedLifetime(sandbox) {}
        }
    }

    @Test(.serialized, arguments: busKinds)
    func `a stranger on the bus can pass on nothing`(kind: BusKind) async throws {
        try handOver(kind.rawValue, to: "stranger")
        await #expect(processExitsWith: .success) {
            let kind = try BusKind.handedOver(to: "stranger")
            setenv("NOTIFYBUS_RELAY", "yes", 1)
            let scene = try RelayScene(kind)
            let sandbox = try scene.makeSandbox()
            let center = NotifyCenter(bus: .address(sandbox.busAddress))
            let heard = Recorder<NotifyName>()
            let observation = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { heard.append($0) }
            let stranger = try RawBusClient(address: scene.bus.address)
            var body = RawBody()
            for text in ["com.example.a", ""] { body.append([text]) }
            let reply = try stranger.call(
                destination: center.observingName(),
                path: "/org/notifybus/Observer1",
                interface: "org.notifybus.Observer1",
                member: "DeliverPosts",
                signature: "asas",
                body: body.bytes
            )
            #expect(reply.errorName == "org.freedesktop.DBus.Error.AccessDenied")
            try center.barrier(timeout: .patience)
            #expect(heard.count == 0)
            observation.cancel()
            withExtendedLifetime(sandbox) {}
        }
    }
}

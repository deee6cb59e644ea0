// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import TestSupport
import Testing

@testable import NotifyAgent

/// Every call to the relay and about it gets a reply, because a caller would hang without one.
@Suite struct AnswerTests {
    private static let emptyOptions: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0]

    private func ask(
        _ client: RawBusClient,
        _ member: String,
        _ signature: String,
        _ body: [UInt8]
    ) throws -> RawMessage {
        try client.call(
            destination: "org.notifybus.Relay1",
            path: "/org/notifybus/Relay1",
            interface: "org.notifybus.Relay1",
            member: member,
            signature: signature,
            body: body
        )
    }

    @Test(arguments: busKinds)
    func `a program whose registration the agent has forgotten meanwhile is refused`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let host = try RelayHost(bus, process: nil)
        let client = try RawBusClient(address: bus.address)
        let reply = try ask(client, "Register", "a{sv}", AnswerTests.emptyOptions)
        #expect(reply.errorName == "org.freedesktop.DBus.Error.Failed")
        host.close()
    }

    @Test(arguments: busKinds)
    func `what a program could not take is passed on again, without another post`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let host = try RelayHost(bus)
        let client = try RawBusClient(address: bus.address)
        #expect(try ask(client, "Register", "a{sv}", AnswerTests.emptyOptions).kind == .reply)
        var body = RawBody()
        body.append(["com.example.a"])
        body.append([])
        #expect(try ask(client, "AddNames", "asas", body.bytes).kind == .reply)
        let poster = NotifyCenter(bus: .address(bus.address))
        try poster.postOnceConnected("com.example.a")
        var batches: [[UInt8]] = []
        while batches.count < 3 {
            let message = try client.readMessage()
            guard message.member == "DeliverPosts" else { continue }
            batches.append(message.body)
            var refusal = RawMessage(batches.count < 3 ? .error : .reply)
            if batches.count < 3 { refusal.errorName = "org.freedesktop.DBus.Error.NoMemory" }
            refusal.destination = message.sender
            refusal.replySerial = message.serial
            try client.send(refusal)
        }
        #expect(Set(batches).count == 1)
        try? poster.close(timeout: nil)
        host.close()
    }

    @Test(arguments: busKinds)
    func `a relay takes the place of one that has yet to leave the bus, and each says what becomes of its programs`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let old = try RelayHost(bus)
        let client = try RawBusClient(address: bus.address)
        #expect(try ask(client, "Register", "a{sv}", AnswerTests.emptyOptions).kind == .reply)
        let name = client.uniqueName
        let new = try RelayHost(bus)
        #expect(old.losses.wait(forCount: 1))
        #expect(old.losses.elements == [RelayHost.Loss(programs: [name], isReplaced: true)])
        // It gives the name back, which no other relay has asked for.
        #expect(try ask(client, "Register", "a{sv}", AnswerTests.emptyOptions).kind == .reply)
        new.perform { $0.giveNameBack() }
        #expect(new.losses.wait(forCount: 1))
        #expect(new.losses.elements == [RelayHost.Loss(programs: [name], isReplaced: false)])
        for host in [old, new] { host.close() }
    }

    @Test(arguments: busKinds)
    func `the agent refuses calls that are meant for the relay, whether there is one or not`(
        kind: BusKind
    ) throws {
        let scene = try RelayScene(kind, opensRelay: false)
        let client = try RawBusClient(address: scene.bus.address)
        for opens in [false, true] {
            if opens { try scene.openRelay() }
            for path in ["/org/notifybus/Agent1", "/org/notifybus/Relay1"] {
                let reply = try client.call(
                    destination: "org.notifybus.Agent1",
                    path: path,
                    interface: "org.notifybus.Relay1",
                    member: "Register",
                    signature: "a{sv}",
                    body: AnswerTests.emptyOptions
                )
                #expect(reply.errorName == "org.freedesktop.DBus.Error.UnknownMethod", "\(path)")
            }
        }
    }
}

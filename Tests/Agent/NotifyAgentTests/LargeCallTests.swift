// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// What large calls may cost the agent, and what it does when the bus had more for it than it keeps.
@Suite(.serialized) struct LargeCallTests {
    private static let large = ["max_message_size": 200_000_000, "max_incoming_bytes": 200_000_000]

    private static func names(_ part: Int, _ count: Int) -> [String] {
        (0..<count).map { "com.example.large.part\(part).n\($0)" }
    }

    @Test(arguments: busKinds)
    func `a registration that is longer than a full one is refused with a sentence, and the next is not`(
        kind: BusKind
    ) throws {
        let agent = try AgentBus(kind, limits: LargeCallTests.large)
        let client = try RawBusClient(address: agent.bus.address)
        let length = 18_000_000
        let body = withUnsafeBytes(of: UInt32(length).littleEndian) { Array($0) } + [UInt8](repeating: 7, count: length)
        let answer = try client.callAgent("Register", signature: "ay", body: body)
        #expect(answer.errorName == "org.freedesktop.DBus.Error.LimitsExceeded")
        #expect(answer.string == "A call can't be longer than 16777216 bytes.")
        #expect(try client.register(LargeCallTests.names(0, 60_000)).kind == .reply)
    }

    @Test(arguments: busKinds)
    func `large registrations of an owner that come at once are put off, and each is carried out in its order`(
        kind: BusKind
    ) throws {
        let agent = try AgentBus(kind)
        let client = try RawBusClient(address: agent.bus.address)
        try #require(try client.register([]).kind == .reply)
        var serials: [UInt32] = []
        for part in 0..<3 {
            var body = RawBody()
            body.append(LargeCallTests.names(part, 8_000))
            body.append([])
            var message = RawMessage(.call)
            message.destination = "org.notifybus.Agent1"
            message.path = "/org/notifybus/Agent1"
            message.interface = "org.notifybus.Agent1"
            message.member = "AddNames"
            (message.signature, message.body) = ("asas", body.bytes)
            serials.append(try client.send(message))
        }
        for serial in serials { #expect(try client.answer(to: serial).kind == .reply) }
        // All of them count: that many more are too many.
        var body = RawBody()
        body.append(LargeCallTests.names(3, 42_000))
        body.append([])
        let answer = try client.callAgent("AddNames", signature: "asas", body: body.bytes)
        #expect(answer.errorName == "org.freedesktop.DBus.Error.LimitsExceeded")
        try agent.checkAlive()
    }

    @Test func `nobody who left stays registered although the bus left out that signal`() throws {
        // Only dbus-daemon leaves out signals to a connection for which it keeps too much.
        let limits = ["max_outgoing_bytes": 64_000_000].merging(LargeCallTests.large) { $1 }
        let agent = try AgentBus(.daemon, limits: limits)
        let flooder = try RawBusClient(address: agent.bus.address)
        var other: RawBusClient? = try RawBusClient(address: agent.bus.address)
        let name = try #require(other?.uniqueName)
        try #require(try other?.register(["com.example.leaver"]).kind == .reply)
        try agent.halt()
        var message = RawMessage(.call)
        message.flags = 1
        message.destination = "org.notifybus.Agent1"
        message.path = "/org/notifybus/Agent1"
        message.interface = "org.notifybus.Agent1"
        message.member = "Release"
        message.signature = "ay"
        let length = 30_000_000
        message.body = withUnsafeBytes(of: UInt32(length).littleEndian) { Array($0) }
        message.body += [UInt8](repeating: 7, count: length)
        for _ in 0..<3 { _ = try flooder.send(message) }
        try flooder.callBus("GetId")
        other = nil
        try #require(try waitUntil(timeout: .patience) { try !flooder.uniqueNames().contains(name) })
        agent.agent.send(signal: SIGCONT)
        let isForgotten = try waitUntil(timeout: .patience) {
            let list = try flooder.callAgent("List")
            return list.kind == .reply && !String(decoding: list.body, as: UTF8.self).contains("com.example.leaver")
        }
        #expect(isForgotten)
    }
}

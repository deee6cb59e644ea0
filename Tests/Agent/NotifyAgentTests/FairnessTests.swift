// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// What one user's calls do to another's, by the order and number of the answers. Scripts/check/fairness measures times.
@Suite(.serialized, .enabled(if: Stranger.unavailable == nil, "Only root can connect as another user."))
struct FairnessTests {
    private static let refused = "org.freedesktop.DBus.Error.LimitsExceeded"

    /// The bus lets a connection wait for as many answers as a session bus does.
    private static let limits = ["max_replies_per_connection": 50_000]

    private static func message(_ member: String) -> RawMessage {
        var message = RawMessage(.call)
        message.destination = "org.notifybus.Agent1"
        message.path = "/org/notifybus/Agent1"
        message.interface = "org.notifybus.Agent1"
        message.member = member
        return message
    }

    /// Observers whose names make a list long, and so calls of List slow.
    private static func makeListLong(_ bus: PrivateBus) throws -> [RawBusClient] {
        try (0..<60).map { number in
            let client = try RawBusClient(address: bus.address)
            let names = (0..<8).map { "com.example.long.n\(number).\($0)." + String(repeating: "x", count: 400) }
            try #require(try client.register(names).kind == .reply)
            return client
        }
    }

    @Test(arguments: busKinds)
    func `with 1,500 of one user's calls queued, another's is answered before them`(
        kind: BusKind
    ) throws {
        let agent = try AgentBus(kind, limits: FairnessTests.limits)
        // A call that concerns all of them takes a while, and its answer is short.
        let observers = try (0..<100).map { number in
            let client = try RawBusClient(address: agent.bus.address)
            try #require(try client.register(["com.example.observer.n\(number)"]).kind == .reply)
            return client
        }
        let flooder = try RawBusClient(address: agent.bus.address)
        let other = try Stranger(address: agent.bus.address, .stays)
        var release = FairnessTests.message("Release")
        (release.signature, release.body) = ("s", RawBusClient.stringBody(""))
        // Both are known to the agent.
        for client in [flooder, other.client] {
            let serial = try client.send(release)
            try #require(try client.answer(to: serial).kind == .reply)
        }
        let monitor = try RawBusClient(address: agent.bus.address)
        try monitor.becomeMonitor()
        try agent.halt()
        for _ in 0..<1_500 { try flooder.send(release) }
        // The bus has then passed all of them on.
        try flooder.callBus("GetId")
        let serial = try other.client.send(release)
        try other.client.callBus("GetId")
        startThread { while (try? flooder.readMessage()) != nil {} }
        agent.agent.send(signal: SIGCONT)

        var (before, after, refusals) = (0, 0, 0)
        var isAnswered = false
        while before + after + refusals < 1_500 {
            let message = try monitor.readMessage()
            guard message.replySerial != nil, message.sender != "org.freedesktop.DBus" else { continue }
            if message.destination == other.client.uniqueName, message.replySerial == serial { isAnswered = true }
            guard message.destination == flooder.uniqueName else { continue }
            if message.kind == .error {
                #expect(message.errorName == FairnessTests.refused)
                refusals += 1
            } else if isAnswered {
                after += 1
            } else {
                before += 1
            }
        }
        #expect(try other.client.answer(to: serial).kind == .reply)
        // A quota refuses most, unless the agent answers them faster than the bus passes them on.
        #expect(isAnswered && after > 0, "\(before) before, \(after) after, \(refusals) refused")
        withExtendedLifetime(observers) {}
    }

    @Test(arguments: busKinds)
    func `a program with four flooding connections leaves its user's other programs their room`(kind: BusKind) throws {
        let agent = try AgentBus(kind, limits: FairnessTests.limits)
        let observers = try (0..<100).map { number in
            let client = try RawBusClient(address: agent.bus.address)
            try #require(try client.register(["com.example.observer.n\(number)"]).kind == .reply)
            return client
        }
        let flooders = try (0..<4).map { _ in try RawBusClient(address: agent.bus.address) }
        let process = try Stranger(address: agent.bus.address, user: geteuid(), .stays)
        let other = process.client
        var release = FairnessTests.message("Release")
        (release.signature, release.body) = ("s", RawBusClient.stringBody(""))
        for client in flooders + [other] {
            let serial = try client.send(release)
            try #require(try client.answer(to: serial).kind == .reply)
        }
        try agent.halt()
        var last: [UInt32] = []
        for client in flooders {
            for _ in 0..<999 { try client.send(release) }
            last.append(try client.send(release))
            // The bus has then passed them on.
            try client.callBus("GetId")
        }
        let serial = try other.send(release)
        try other.callBus("GetId")
        agent.agent.send(signal: SIGCONT)
        let answer = try other.answer(to: serial)
        #expect(answer.kind == .reply, "\(answer.string ?? "")")
        // It was a flood indeed: some of it was refused.
        var refusals = 0
        for (client, last) in zip(flooders, last) {
            var message = try client.readMessage()
            while message.replySerial != last {
                if message.errorName == FairnessTests.refused { refusals += 1 }
                message = try client.readMessage()
            }
        }
        #expect(refusals > 0)
        withExtendedLifetime((observers, process)) {}
    }

    @Test(arguments: busKinds)
    func `questions that a hanging service leaves open count towards the asking user's quota`(kind: BusKind) throws {
        // The system bus, by which the agent asks about the battery.
        let machine = try HangingBus()
        let agent = try AgentBus(
            kind,
            limits: FairnessTests.limits,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": machine.address]
        )
        let asker = try Stranger(address: agent.bus.address, .stays)
        let other = try RawBusClient(address: agent.bus.address)
        var question = FairnessTests.message("GetNameState")
        (question.signature, question.body) = ("s", RawBusClient.stringBody("com.apple.system.powersources.percent"))
        // The agent knows who asks.
        try #require(try asker.client.callAgent("Status").kind == .reply)
        try agent.halt()
        var missing: Set<UInt32> = []
        for _ in 0..<1_500 { missing.insert(try asker.client.send(question)) }
        try asker.client.callBus("GetId")
        agent.agent.send(signal: SIGCONT)
        #expect(try other.setState("pid:1", "background").errorName == "org.notifybus.Error.NoSuchTarget")
        var (answers, refusals) = (0, 0)
        while !missing.isEmpty {
            let message = try asker.client.readMessage()
            guard let serial = message.replySerial, missing.remove(serial) != nil else { continue }
            if message.kind == .reply { answers += 1 } else { refusals += 1 }
            if message.kind == .error { #expect(message.errorName == FairnessTests.refused) }
        }
        #expect(answers > 0 && answers < 1_500 && answers + refusals == 1_500, "\(answers) answers")
        // They are over, and count no longer.
        #expect(try asker.client.callAgent("GetNameState", signature: "s", body: question.body).kind == .reply)
        withExtendedLifetime(machine) {}
    }

    @Test(arguments: busKinds)
    func `unread answers are limited, and once they are read there are more`(kind: BusKind) throws {
        let agent = try AgentBus(kind, limits: FairnessTests.limits)
        let observers = try FairnessTests.makeListLong(agent.bus)
        let client = try RawBusClient(address: agent.bus.address)
        let other = try Stranger(address: agent.bus.address, .stays)
        let length = try client.callAgent("List").body.count
        var missing: Set<UInt32> = []
        for _ in 0..<600 { missing.insert(try client.send(FairnessTests.message("List"))) }
        // Another user is served, whatever is unread.
        #expect(try other.client.callAgent("List").kind == .reply)
        var (bytes, refusals) = (0, 0)
        while !missing.isEmpty {
            let message = try client.readMessage()
            #expect(message.kind != .error || message.sender != "org.freedesktop.DBus")
            guard let serial = message.replySerial, missing.remove(serial) != nil else { continue }
            if message.kind == .reply { bytes += message.body.count } else { refusals += 1 }
        }
        // dbus-broker charges them to the recipient, so the agent need not care.
        if kind == .daemon { #expect(refusals > 0 && bytes < 600 * length) }
        #expect(waitUntil(timeout: .patience) { (try? client.callAgent("List").kind) == .reply })
        withExtendedLifetime(observers) {}
    }
}

extension RawBusClient {
    /// From now on the client receives every message on the bus.
    fileprivate func becomeMonitor() throws {
        let body = RawBody.withNoRules
        let answer = try call(
            destination: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus.Monitoring",
            member: "BecomeMonitor",
            signature: "asu",
            body: body
        )
        try #require(answer.kind == .reply)
    }
}

extension RawBody {
    fileprivate static var withNoRules: [UInt8] {
        var body = RawBody()
        body.append([])
        body.append(UInt32(0))
        return body.bytes
    }
}

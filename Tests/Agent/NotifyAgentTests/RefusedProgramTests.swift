// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Programs that the agent refuses, or must not.
@Suite struct RefusedProgramTests {
    @Test(arguments: busKinds)
    func `a program that the agent has refused registers once its user's quota has room`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let client = try RawBusClient(address: agent.bus.address)
        let center = NotifyCenter(bus: .address(agent.bus.address))
        // As many prefixes as a user may have.
        var greedy: [RawBusClient] = []
        for number in 0..<4 {
            greedy.append(try RawBusClient(address: agent.bus.address))
            let answer = try greedy[number].register([], prefixes: (0..<1_024).map { "com.example.p\(number).p\($0)." })
            try #require(answer.kind == .reply, "\(answer.errorName ?? "")")
        }
        let observation = try center.addObserver(matching: .prefix("com.example.late."), timeout: .seconds(25)) { _ in }
        defer { observation.cancel() }
        let name = try center.observingName()
        try #require(try client.setState(name, "background").errorName == "org.notifybus.Error.NoSuchTarget")
        try #require(try greedy[0].register([]).kind == .reply)
        try #require(waitUntil(timeout: .patience) { try client.setState(name, "background").kind == .reply })
        #expect(center.lifecycle.state == .background)
    }

    /// What comes before a program in a PID namespace of its own.
    private static let pidNamespace = ["unshare", "-U", "-r", "-p", "-f", "--kill-child", "--mount-proc", "--"]

    /// In a chroot, or where a part of /proc is covered, none can be mounted.
    private static var canMountProc: Bool {
        geteuid() == 0 && (try? run("unshare", pidNamespace.dropFirst() + ["true"]).status) == 0
    }

    @Test(.enabled(if: canMountProc, "needs root, and a namespace that may mount /proc"), arguments: busKinds)
    func `a process that an agent in another PID namespace can't see has not ended`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try start(
            product: "notify-agent",
            ["--address", bus.address],
            by: Self.pidNamespace + ["env", "DISPLAY="]
        )
        try agent.waitForErrorOutput(containing: "ready")
        let answer = try RawBusClient(address: bus.address).register(["com.example.a"])
        #expect(answer.errorName == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(
            answer.string == "Process \(getpid()) made this connection in another process namespace than this agent's."
        )
        // unshare(1) heeds no other.
        agent.send(signal: SIGKILL)
        _ = try agent.wait()
    }

    @Test(arguments: busKinds)
    func `what a connection said before it ended keeps nobody of its user out`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let leaving = try RawBusClient(address: agent.bus.address, passesDescriptors: true)
        let client = try RawBusClient(address: agent.bus.address)
        let names = (0..<1_500).map { "com.example.n\($0)" }
        try #require(try leaving.register(names, with: leaving.socket).kind == .reply)
        // Both are known.
        try #require(try client.callAgent("Status").kind == .reply)
        try agent.halt()
        for name in names {
            var message = RawMessage(.call)
            (message.destination, message.interface) = ("org.notifybus.Agent1", "org.notifybus.Agent1")
            (message.path, message.member, message.signature) = ("/org/notifybus/Agent1", "RemoveNames", "asas")
            message.flags = 1
            var body = RawBody()
            body.append([name])
            body.append([])
            message.body = body.bytes
            try leaving.send(message)
        }
        // The bus has taken all of it by then.
        try leaving.callBus("GetId")
        shutdown(leaving.socket, Int32(SHUT_RDWR))
        #expect(throws: (any Error).self) { try client.register(["com.example.a"], timeout: .zero) }
        try client.callBus("GetId")
        agent.agent.send(signal: SIGCONT)
        var answer = try client.readMessage()
        while answer.kind == .signal { answer = try client.readMessage() }
        #expect(answer.kind == .reply, "\(answer.errorName ?? "")")
    }

    @Test(arguments: busKinds)
    func `each call is answered once, also those beyond what a user may have pending`(kind: BusKind) throws {
        let agent = try AgentBus(kind, limits: ["max_replies_per_connection": 50_000])
        let client = try RawBusClient(address: agent.bus.address)
        try #require(try client.callAgent("Status").kind == .reply)
        try agent.halt()
        var message = RawMessage(.call)
        (message.destination, message.interface) = ("org.notifybus.Agent1", "org.notifybus.Agent1")
        (message.path, message.member, message.signature) = ("/org/notifybus/Agent1", "SetState", "ssb")
        message.body = RawBusClient.setStateBody("pid:1", "background")
        // Three times as many as may be pending.
        let serials = try (0..<3 * 1_024).map { _ in try client.send(message) }
        try client.callBus("GetId")
        agent.agent.send(signal: SIGCONT)
        var open = Set(serials)
        var refused = 0
        while !open.isEmpty {
            let answer = try client.readMessage()
            guard answer.kind == .error, let serial = answer.replySerial else { continue }
            try #require(open.remove(serial) != nil)
            if answer.errorName == "org.freedesktop.DBus.Error.LimitsExceeded" { refused += 1 }
        }
        #expect(refused > 0)
        // Once the agent has learned that they are read, there are more. Nothing else comes.
        #expect(waitUntil(timeout: .patience) { (try? client.callAgent("Status").kind) == .reply })
        #expect(throws: (any Error).self) { try client.readMessage(timeout: .zero) }
    }
}

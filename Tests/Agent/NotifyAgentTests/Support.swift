// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// A private bus with an agent on it.
final class AgentBus: Sendable {
    let bus: PrivateBus
    let agent: RunningCommand

    init(_ kind: BusKind, limits: [String: Int] = [:], arguments: [String] = [], environment: [String: String?] = [:])
        throws
    {
        bus = try PrivateBus(kind, limits: limits)
        agent = try start(
            productPath("notify-agent"),
            ["--address", bus.address] + arguments,
            environment: withoutDesktop.merging(["XDG_RUNTIME_DIR": bus.folder]) { $1 }.merging(environment) { $1 }
        )
        try agent.waitForErrorOutput(containing: "ready")
    }

    /// Stops the agent's process.
    func halt() throws {
        agent.send(signal: SIGSTOP)
        try #require(waitUntil(timeout: .patience) { processState(agent.pid) == "T" })
    }

    /// Checks that the agent is alive and answers.
    func checkAlive() throws {
        let client = try RawBusClient(address: bus.address)
        #expect(try client.callAgent("Ping", interface: "org.freedesktop.DBus.Peer").kind == .reply)
    }
}

extension RawBusClient {
    func callAgent(
        _ member: String,
        interface: String = "org.notifybus.Agent1",
        path: String = "/org/notifybus/Agent1",
        signature: String = "",
        body: [UInt8] = [],
        with descriptors: [Int32] = []
    ) throws -> RawMessage {
        try call(
            destination: "org.notifybus.Agent1",
            path: path,
            interface: interface,
            member: member,
            signature: signature,
            body: body,
            with: descriptors
        )
    }

    func setState(_ target: String, _ state: String, freeze: Bool = false) throws -> RawMessage {
        try callAgent("SetState", signature: "ssb", body: RawBusClient.setStateBody(target, state, freeze: freeze))
    }

    /// Sets a state, and returns what the agent says in the end. On a busy machine that may take longer than the agent
    /// waits; asking again continues the wait.
    func keepSettingState(_ target: String, _ state: String) throws -> RawMessage {
        var answer = try setState(target, state)
        _ = try waitUntil {
            guard answer.errorName == "org.notifybus.Error.TimedOut" else { return true }
            answer = try setState(target, state)
            return false
        }
        return answer
    }

    static func setStateBody(_ target: String, _ state: String, freeze: Bool = false) -> [UInt8] {
        var body = RawBody()
        body.append(target)
        body.append(state)
        body.append(UInt32(freeze ? 1 : 0))
        return body.bytes
    }

    /// Registers names.
    ///
    /// - Parameter socket: what to pass as the connection's socket, if anything.
    func register(
        _ names: [String],
        prefixes: [String] = [],
        state: String? = nil,
        previous: String? = nil,
        decider: String? = nil,
        followsDesktop: Bool = false,
        with socket: Int32? = nil,
        timeout: Duration = .patience
    ) throws -> RawMessage {
        var entries = RawBody()
        func entry(_ key: String, _ text: String) {
            entries.align(to: 8)
            entries.append(key)
            entries.append(signature: "s")
            entries.append(text)
        }
        for (key, texts) in [("names", names), ("prefixes", prefixes)] {
            entries.align(to: 8)
            entries.append(key)
            entries.append(signature: "as")
            entries.append(texts)
        }
        if let state { entry("state", state) }
        if let previous { entry("previous", previous) }
        entry("program", "a test")
        if let decider { entry("decider", decider) }
        if followsDesktop {
            entries.align(to: 8)
            entries.append("followsDesktop")
            entries.append(signature: "b")
            entries.append(UInt32(1))
        }
        if socket != nil {
            entries.align(to: 8)
            entries.append("socket")
            entries.append(signature: "h")
            entries.append(UInt32(0))
        }
        var body = RawBody()
        body.append(UInt32(entries.bytes.count))
        body.align(to: 8)
        body.append(bytes: entries.bytes)
        var message = RawMessage(.call)
        message.destination = "org.notifybus.Agent1"
        message.path = "/org/notifybus/Agent1"
        message.interface = "org.notifybus.Agent1"
        message.member = "Register"
        message.signature = "a{sv}"
        message.body = body.bytes
        let serial = try socket.map { try send(message, with: [$0]) } ?? send(message)
        return try answer(to: serial, timeout: timeout)
    }

    /// Reads up to the next call, past the bus's own messages.
    func readCall(timeout: Duration = .patience) throws -> RawMessage {
        while true {
            let message = try readMessage(timeout: timeout)
            if message.kind == .call { return message }
        }
    }

    /// Returns once the agent has handled everything that this client has sent.
    func settle() throws {
        for _ in 0..<3 { _ = try callAgent("Ping", interface: "org.freedesktop.DBus.Peer") }
    }

    /// Reads up to the next call of this method, and answers it if it is SetState.
    func takeCall(_ member: String) throws -> RawMessage {
        while true {
            let message = try readMessage()
            guard message.kind == .call, message.member == member else { continue }
            if member == "SetState" { try answerSetState(message) }
            return message
        }
    }

    func answerSetState(_ message: RawMessage) throws {
        var answer = RawMessage(.reply)
        answer.destination = message.sender
        answer.replySerial = message.serial
        answer.flags = 1
        answer.signature = "t"
        answer.body = [7, 0, 0, 0, 0, 0, 0, 0]
        try send(answer)
    }

    func post(_ name: String) throws {
        try emitSignal(
            path: "/org/notifybus",
            interface: "org.notifybus.n." + name,
            member: "Posted",
            signature: "s",
            body: RawBusClient.stringBody(name)
        )
        // Once this is answered, the bus has passed the post on.
        try callBus("GetId")
    }

    /// Sends a call without waiting for its answer.
    func begin(_ target: String, _ state: String, freeze: Bool = false) throws -> UInt32 {
        var message = RawMessage(.call)
        message.destination = "org.notifybus.Agent1"
        message.path = "/org/notifybus/Agent1"
        message.interface = "org.notifybus.Agent1"
        message.member = "SetState"
        message.signature = "ssb"
        message.body = RawBusClient.setStateBody(target, state, freeze: freeze)
        return try send(message)
    }

    /// Reports the state of this client's program, without waiting for the answer.
    func beginReport(_ state: String) throws -> UInt32 {
        var message = RawMessage(.call)
        message.destination = "org.notifybus.Agent1"
        message.path = "/org/notifybus/Agent1"
        message.interface = "org.notifybus.Agent1"
        message.member = "Report"
        message.signature = "s"
        message.body = RawBusClient.stringBody(state)
        return try send(message)
    }

    func answer(to serial: UInt32, timeout: Duration = .patience) throws -> RawMessage {
        while true {
            let message = try readMessage(timeout: timeout)
            if message.replySerial == serial { return message }
        }
    }
}

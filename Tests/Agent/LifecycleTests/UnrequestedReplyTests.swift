// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization
import TestSupport
import Testing

/// A stranger answers calls that were made to others.
@Suite struct UnrequestedReplyTests {
    /// A policy that lets unrequested replies pass, as dbus-daemon's session bus does.
    private static let policy = """
        <policy context="default">
          <allow user="*"/>
          <allow own="*"/>
          <allow send_destination="*" eavesdrop="true"/>
          <allow eavesdrop="true"/>
        </policy>
        """

    @Test(arguments: busKinds)
    func `a stranger's answers disconnect, silence and control nobody`(kind: BusKind) throws {
        let agent = try AgentBus(kind, policy: Self.policy)
        let control = try RawBusClient(address: agent.bus.address)
        let stranger = try RawBusClient(address: agent.bus.address)
        let before = try control.uniqueNames()
        let changes = Counter()
        let center = NotifyCenter(bus: .address(agent.bus.address)) { _ in changes.add() }
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        let observer = try center.observingName()
        try center.postOnceConnected("com.example.x")
        try #require(heard.wait(for: 1))
        let connections = try control.uniqueNames().subtracting(before)
        try #require(connections.count == 2)
        let owner = try owner(of: AgentInterface.name, control)
        try #require(try answersPass(from: stranger, on: agent.bus) || kind == .broker)

        // Meanwhile all of them make many calls, so that the answers arrive while calls are pending.
        let isOver = Atomic(false)
        let finished = Counter()
        startThread {
            try? answerEverything(askedBy: connections + [owner], stranger)
            isOver.store(true, ordering: .releasing)
            finished.add()
        }
        var posts = 1
        while !isOver.load(ordering: .acquiring) {
            let other = try center.addObserver(for: NotifyName("com.example.y\(posts)"), timeout: .seconds(25)) { _ in }
            try center.postOnceConnected("com.example.x")
            try center.synchronize(timeout: .patience)
            posts += 1
            try #require(heard.wait(for: posts))
            try agent.set(observer, posts % 2 == 0 ? .suspended : .background)
            try agent.set(observer, .foreground)
            other.cancel()
        }
        try #require(finished.wait(for: 1))

        try center.postOnceConnected("com.example.x")
        #expect(heard.wait(for: posts + 1))
        try center.barrier(timeout: .patience)
        #expect(heard.value == posts + 1)
        #expect(changes.value == 0)
        #expect(try self.owner(of: AgentInterface.name, control) == owner)
        #expect(try agent.state(of: observer) == "foreground")
        #expect(try command(observer, by: stranger) == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(center.lifecycle.state == .foreground)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `only the connection that was asked can answer`(kind: BusKind) throws {
        let agent = try AgentBus(kind, policy: Self.policy)
        let stranger = try RawBusClient(address: agent.bus.address)
        let center = agent.makeCenter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in }
        let observer = try center.observingName()
        let answers = Recorder<Int?>()
        try stop(agent.agentProcess)
        defer { kill(agent.agentProcess, SIGCONT) }
        center.perform { link in
            link.call(AgentInterface.name, path: AgentInterface.path, interface: AgentInterface.name, member: "Status")
            { answer in
                answers.append((try? answer.get())?.count)
            }
        }
        // Once for the call that asks who the agent is, once for the calls to it.
        for _ in 0..<2 { try center.barrier(timeout: .patience) }
        try answerEverything(askedBy: [observer], stranger)
        try center.barrier(timeout: .patience)
        #expect(answers.count == 0)
        kill(agent.agentProcess, SIGCONT)
        try #require(answers.wait(forCount: 1, timeout: .patience))
        #expect(answers.elements == [1])
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `an observer that looks for its agent mistakes no other connection for it`(kind: BusKind) throws {
        let agent = try AgentBus(kind, policy: Self.policy)
        let stranger = try RawBusClient(address: agent.bus.address)
        let before = try stranger.uniqueNames()
        let center = agent.makeCenter()
        let heard = Counter()
        // The observer waits for the agent, and gets the stranger's replies in the meantime.
        try stop(agent.agentProcess)
        defer { kill(agent.agentProcess, SIGCONT) }
        let registered = Recorder<NotifyCenter.Observation>()
        startThread {
            if let observation = try? center.addObserver(
                for: "com.example.x",
                timeout: .seconds(25),
                using: { _ in heard.add() }
            ) {
                registered.append(observation)
            }
        }
        try #require(waitUntil { (try? stranger.uniqueNames().subtracting(before).count) == 1 })
        let observer = try #require(try stranger.uniqueNames().subtracting(before).first)
        try answerEverything(askedBy: [observer], stranger)
        #expect(try command(observer, by: stranger) == "org.freedesktop.DBus.Error.AccessDenied")
        kill(agent.agentProcess, SIGCONT)
        try #require(registered.wait(forCount: 1, timeout: .patience))
        try #require(waitUntil { (try? agent.state(of: observer)) == "foreground" })
        try agent.set(observer, .background)
        #expect(center.lifecycle.state == .background)
        try agent.set(observer, .foreground)
        try center.postOnceConnected("com.example.x")
        #expect(heard.wait(for: 1))
        for observation in registered.elements { observation.cancel() }
    }

    /// Answers every call that may be pending, and returns when the bus has passed everything on.
    private func answerEverything(askedBy victims: [String], _ stranger: RawBusClient) throws {
        for serial in 1...500 as ClosedRange<UInt32> {
            for victim in victims { try answer(serial, of: victim, by: stranger) }
        }
        try stranger.callBus("GetId")
    }

    /// Stops a process, and returns when all its threads are stopped.
    private func stop(_ process: pid_t) throws {
        kill(process, SIGSTOP)
        try #require(waitUntil { processState(process) == "T" })
    }

    private func owner(of name: String, _ client: RawBusClient) throws -> String {
        let reply = try client.callBus("GetNameOwner", signature: "s", body: RawBusClient.stringBody(name))
        return try #require(reply.string)
    }

    /// The error that the stranger gets for impersonating the agent.
    private func command(_ observer: String, by stranger: RawBusClient) throws -> String? {
        try stranger.call(
            destination: observer,
            path: ObserverInterface.path,
            interface: ObserverInterface.name,
            member: "SetState",
            signature: "s",
            body: RawBusClient.stringBody("background")
        ).errorName
    }

    /// Whether the bus passes on unrequested replies. dbus-broker does not.
    private func answersPass(from stranger: RawBusClient, on bus: PrivateBus) throws -> Bool {
        let witness = try RawBusClient(address: bus.address)
        try answer(900, of: witness.uniqueName, by: stranger)
        try stranger.callBus("GetId")
        try stranger.emitSignal(
            path: "/",
            interface: "com.example.End",
            member: "End",
            destination: witness.uniqueName
        )
        while true {
            let message = try witness.readMessage()
            if message.replySerial == 900 { return true }
            if message.interface == "com.example.End" { return false }
        }
    }
}

/// Answers another client's call with everything that could do harm.
private func answer(_ serial: UInt32, of victim: String, by stranger: RawBusClient) throws {
    var registered = RawBody()
    registered.append("background")
    registered.append(UInt32(0))
    let bodies: [(signature: String, body: [UInt8])] = [
        ("", []), ("s", RawBusClient.stringBody(":1.0")), ("sas", registered.bytes), ("u", [0, 0, 0, 0]),
    ]
    for (signature, body) in bodies {
        var reply = RawMessage(.reply)
        (reply.destination, reply.replySerial, reply.flags) = (victim, serial, 1)
        (reply.signature, reply.body) = (signature, body)
        try stranger.send(reply)
    }
    var error = RawMessage(.error)
    (error.destination, error.replySerial, error.flags) = (victim, serial, 1)
    error.errorName = "org.freedesktop.DBus.Error.ServiceUnknown"
    try stranger.send(error)
}

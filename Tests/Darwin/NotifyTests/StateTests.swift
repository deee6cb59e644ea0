// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyTokens
import TestSupport
import Testing

/// The states of names, which the agent keeps.
@Suite
struct StateTests {
    /// Starts an agent, and returns when the engine's connection is registered with it.
    private func startAgent(_ room: NotifyRoom) throws -> RunningCommand {
        let path = try productPath("notify-agent")
        let agent = try start(path, ["--address", room.bus.address, "-q"], output: .null, errorOutput: .null)
        let token = try room.register("com.example.probe")
        let isThere = waitUntil(timeout: .patience) { status { _ = try room.engine.state(of: token) } == .ok }
        try #require(isThere, "the agent does not answer")
        try room.engine.cancel(token)
        return agent
    }

    private func kill(_ agent: RunningCommand) throws {
        agent.send(signal: SIGKILL)
        _ = try agent.wait(timeout: .patience)
    }

    @Test(arguments: busKinds)
    func `a state is visible to everyone who has registered the name, and posts nothing`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let agent = try startAgent(room)
        defer { agent.send(signal: SIGKILL) }
        let other = TokenEngine(center: room.other)
        var theirs: Int32 = 0
        try other.register("com.example.a", .none, token: &theirs)
        let ours = try room.register("com.example.a")
        #expect(try inTime { try other.state(of: theirs) } == 0)
        _ = other.check(theirs)
        try inTime { try room.engine.setState(.max, of: ours) }
        #expect(try inTime { try other.state(of: theirs) } == .max)
        try inTime { try other.setState(42, of: theirs) }
        #expect(try inTime { try room.engine.state(of: ours) } == 42)
        try room.settle()
        try room.other.barrier(timeout: .patience)
        #expect(other.check(theirs) == false)
        let neighbour = try room.register("com.example.b")
        #expect(try inTime { try room.engine.state(of: neighbour) } == 0)
    }

    @Test(arguments: busKinds)
    func `a state exists as long as any registration of its name`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let agent = try startAgent(room)
        defer { agent.send(signal: SIGKILL) }
        let other = TokenEngine(center: room.other)
        var theirs: Int32 = 0
        try other.register("com.example.a", .none, token: &theirs)
        let ours = try room.register("com.example.a")
        try inTime { try room.engine.setState(1, of: ours) }
        try room.engine.cancel(ours)
        #expect(try inTime { try other.state(of: theirs) } == 1)
        try other.cancel(theirs)
        // A name that this process has not set is released after a second.
        #expect(waitUntil { other.isAtRest })
        try room.other.barrier(timeout: .patience)
        var token = try room.register("com.example.a")
        #expect(try inTime { try room.engine.state(of: token) } == 0)
        // One that this process has set is released at once.
        token = try room.register("com.example.c")
        try inTime { try room.engine.setState(3, of: token) }
        try room.engine.cancel(token)
        token = try room.register("com.example.c")
        #expect(try inTime { try room.engine.state(of: token) } == 0)
    }

    @Test(arguments: busKinds)
    func `states survive the agent`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let first = try startAgent(room)
        let other = TokenEngine(center: room.other)
        var theirs: Int32 = 0
        try other.register("com.example.a", .none, token: &theirs)
        let ours = try room.register("com.example.a")
        try inTime { try room.engine.setState(1, of: ours) }
        try inTime { try other.setState(2, of: theirs) }
        try kill(first)
        // The bus must first report that there is no agent; no call waits forever.
        #expect(waitUntil { status { _ = try room.engine.state(of: ours) } == .serverNotFound })
        #expect(waitUntil { status { try room.engine.setState(9, of: ours) } == .serverNotFound })
        let second = try startAgent(room)
        // Both report what they had set; the newer one counts, in whatever order.
        try room.other.barrier(timeout: .patience)
        #expect(waitUntil { (try? other.state(of: theirs)) == 2 })
        #expect(try inTime { try room.engine.state(of: ours) } == 2)
        // And in the other order.
        try inTime { try room.engine.setState(3, of: ours) }
        try kill(second)
        let third = try startAgent(room)
        defer { third.send(signal: SIGKILL) }
        #expect(waitUntil { (try? other.state(of: theirs)) == 3 })
        #expect(try inTime { try room.engine.state(of: ours) } == 3)
    }

    @Test(arguments: busKinds)
    func `the agent refuses states of names without observers, and malformed calls`(
        kind: BusKind
    ) throws {
        let room = try NotifyRoom(kind)
        let agent = try startAgent(room)
        defer { agent.send(signal: SIGKILL) }
        let client = try RawBusClient(address: room.bus.address)
        func call(_ member: String, _ signature: String, _ name: String) throws -> RawMessage {
            var body = RawBody()
            body.append(name)
            if signature == "st" {
                body.align(to: 8)
                body.append(bytes: repeatElement(0, count: 8))
            }
            return try client.call(
                destination: "org.notifybus.Agent1",
                path: "/org/notifybus/Agent1",
                interface: "org.notifybus.Agent1",
                member: member,
                signature: signature,
                body: body.bytes
            )
        }
        let invalid = "org.freedesktop.DBus.Error.InvalidArgs"
        #expect(try call("SetNameState", "st", "com.example.nobody").errorName == "org.notifybus.Error.NotObserved")
        #expect(try call("SetNameState", "st", "").errorName == invalid)
        #expect(try call("SetNameState", "s", "com.example.a").errorName == invalid)
        #expect(try call("GetNameState", "s", String(repeating: "x", count: 512)).errorName == invalid)
        #expect(try call("GetNameState", "s", "com.example.nobody").kind == .reply)
        let token = try room.register("com.example.a")
        #expect(try call("SetNameState", "st", "com.example.a").kind == .reply)
        #expect(try inTime { try room.engine.state(of: token) } == 0)
    }

    @Test func `without an agent the status says so`() throws {
        let room = try NotifyRoom(.daemon)
        let token = try room.register("com.example.a")
        #expect(status { try room.engine.setState(1, of: token) } == .serverNotFound)
        #expect(status { _ = try room.engine.state(of: token) } == .serverNotFound)
        #expect(status { try room.engine.suspend(process: getpid()) } == .serverNotFound)
        #expect(status { try room.engine.setState(1, of: 999) } == .invalidToken)
    }

    @Test(arguments: busKinds)
    func `a stopped agent holds nobody up for long`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let agent = try startAgent(room)
        let token = try room.register("com.example.a")
        agent.send(signal: SIGSTOP)
        #expect(waitUntil { processState(agent.pid) == "T" })
        #expect(status { try room.engine.setState(1, of: token) } == .failed)
        agent.send(signal: SIGKILL)
    }

    @Test(arguments: busKinds)
    func `a process is suspended by its id, and each token is notified once on resume`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let agent = try startAgent(room)
        defer { agent.send(signal: SIGKILL) }
        let other = TokenEngine(center: room.other)
        let (one, descriptor) = try room.registerPipe("com.example.a")
        let two = try room.registerPipe("com.example.a", reusing: descriptor).token
        let three = try room.registerPipe("com.example.quiet", reusing: descriptor).token
        try other.suspend(process: getpid())
        for _ in 0..<5 { try other.post("com.example.a") }
        try room.other.synchronize(timeout: .patience)
        try room.center.barrier(timeout: .patience)
        #expect(tokens(in: descriptor).isEmpty)
        try other.resume(process: getpid())
        try room.settle()
        #expect(tokens(in: descriptor).sorted() == [one, two].sorted())
        try room.post("com.example.quiet")
        #expect(tokens(in: descriptor) == [three])
        #expect(status { try other.suspend(process: 1) } == .invalidRequest)
        #expect(status { try other.suspend(process: -1) } == .invalidRequest)
    }
}

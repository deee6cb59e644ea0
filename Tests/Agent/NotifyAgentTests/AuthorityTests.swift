// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct AuthorityTests {
    /// Calls a method of the agent as the user `nobody`.
    private func asNobody(_ agent: AgentBus, _ member: String, _ arguments: String...) throws -> CommandResult {
        try run(
            "setpriv",
            [
                "--reuid", "65534", "--regid", "65534", "--clear-groups", "dbus-send", "--bus=\(agent.bus.address)",
                "--print-reply", "--dest=org.notifybus.Agent1", "/org/notifybus/Agent1",
                "org.notifybus.Agent1.\(member)",
            ] + arguments
        )
    }

    @Test(.enabled(if: geteuid() == 0, "only root can become another user"), arguments: busKinds)
    func `another user's observer can't be changed, and its state stays`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try RawBusClient(address: agent.bus.address)
        _ = try observer.register(["com.example.a"])
        for target in [observer.uniqueName, "pid:\(getpid())"] {
            let result = try asNobody(agent, "SetState", "string:\(target)", "string:background", "boolean:false")
            #expect(result.status != 0)
            #expect(result.errorOutput.contains("AccessDenied"), "\(result.errorOutput)")
            #expect(result.errorOutput.contains("only that user and root"))
        }
        // Once this is answered, everything that the agent sent before has arrived.
        try observer.settle()
        #expect(throws: TestSupportError.self) { _ = try observer.readCall(timeout: .zero) }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can become another user"), arguments: busKinds)
    func `the agent hands over to nobody but its own user, and goes on`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let refused = try asNobody(agent, "HandOver")
        #expect(refused.errorOutput.contains("AccessDenied"), "\(refused.errorOutput)")
        try agent.checkAlive()
    }

    @Test(.enabled(if: geteuid() == 0, "only root can become another user"), arguments: busKinds)
    func `a user who may post a name may set its state`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try RawBusClient(address: agent.bus.address)
        _ = try observer.register(["user.uid.0.a", "com.example.a"])
        let refused = try asNobody(agent, "SetNameState", "string:user.uid.0.a", "uint64:5")
        #expect(refused.errorOutput.contains("AccessDenied"), "\(refused.errorOutput)")
        #expect(try asNobody(agent, "GetNameState", "string:user.uid.0.a").output.contains("uint64 0"))
        // A name for everybody, and anybody may read its state.
        #expect(try asNobody(agent, "SetNameState", "string:com.example.a", "uint64:6").status == 0)
        #expect(try asNobody(agent, "GetNameState", "string:com.example.a").output.contains("uint64 6"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can become another user"), arguments: busKinds)
    func `only the same user and root see which names a program observes`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try RawBusClient(address: agent.bus.address)
        _ = try observer.register(["com.example.secret"])
        let theirs = try asNobody(agent, "List")
        #expect(theirs.status == 0)
        #expect(theirs.output.contains(observer.uniqueName) && !theirs.output.contains("com.example.secret"))
        let ours = try run(productPath("notify-lifecycle"), ["--address", agent.bus.address, "list", "-v"])
        #expect(ours.lines.last == "    com.example.secret", "\(ours.output)")
    }

    @Test(arguments: busKinds)
    func `a connection with a great many names doesn't make the list large`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try RawBusClient(address: agent.bus.address)
        _ = try observer.register((1...10_000).map { "com.example.name.\($0)" })
        let list = try run(productPath("notify-lifecycle"), ["--address", agent.bus.address, "list", "--json"])
        #expect(list.output.contains(#""names":10000"#) && list.output.contains(#""com.example.name."#))
        #expect(list.output.utf8.count < 8_192)
    }

    @Test(arguments: busKinds)
    func `only a registered connection can report`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let stranger = try RawBusClient(address: agent.bus.address)
        let body = RawBusClient.stringBody("background")
        let answer = try stranger.callAgent("Report", signature: "s", body: body)
        #expect(answer.errorName == "org.notifybus.Error.NotRegistered")
    }

    @Test(arguments: busKinds)
    func `anything but a target, a state or the right type is refused with the right error`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let client = try RawBusClient(address: agent.bus.address)
        _ = try client.register(["com.example.a"])
        let wrongTargets = ["", "pid:x", "pid:-1", "1.5", "app:"].map { ($0, "background") }
        for (target, state) in wrongTargets + ["asleep", ""].map({ (client.uniqueName, $0) }) {
            #expect(
                try client.setState(target, state).errorName == "org.freedesktop.DBus.Error.InvalidArgs",
                "\(target) \(state)"
            )
        }
        for target in ["pid:1", ":1.99999", "app:org.example.None"] {
            #expect(try client.setState(target, "background").errorName == "org.notifybus.Error.NoSuchTarget")
        }
        let wrong = try client.callAgent("SetState", signature: "s", body: RawBusClient.stringBody("x"))
        #expect(wrong.errorName == "org.freedesktop.DBus.Error.InvalidArgs")
        #expect(try client.callAgent("Nothing").errorName == "org.freedesktop.DBus.Error.UnknownMethod")
        let freeze = try client.setState(client.uniqueName, "background", freeze: true)
        #expect(freeze.errorName == "org.freedesktop.DBus.Error.InvalidArgs")
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// Who decides when persons, programs and the desktop disagree. `notify-wait` and `notify-lifecycle` are real; this
/// test calls SetForeground in the desktop's place.
@Suite struct ReleaseTests {
    @Test(arguments: busKinds)
    func `a program that follows the focus is in front with it; a person overrides that, until release`(kind: BusKind)
        throws
    {
        let scene = try Scene(kind, configuration: "focus = background\n")
        let (one, other) = (try scene.startObserver(), try scene.startObserver())
        // The focus is not known yet.
        #expect(try scene.lines() == ["\(one.pid) foreground default", "\(other.pid) foreground default"])

        try scene.setForeground(one.pid)
        try scene.wait(for: ["\(one.pid) foreground shell", "\(other.pid) background shell"])
        try scene.setForeground(other.pid)
        try scene.wait(for: ["\(one.pid) background shell", "\(other.pid) foreground shell"])
        try scene.setForeground(0)
        try scene.wait(for: ["\(one.pid) background shell", "\(other.pid) background shell"])

        try scene.lifecycle("foreground", "\(one.pid)")
        try scene.lifecycle("suspend", "\(other.pid)")
        try scene.setForeground(other.pid)
        // The agent looks at the desktop's facts at most every 20 ms.
        try scene.waitForStatus("shell    live  4 facts: process \(other.pid)\n")
        #expect(try scene.lines() == ["\(one.pid) foreground person", "\(other.pid) suspended person"])
        // Once it returns the change is in force.
        try scene.lifecycle("release", "\(other.pid)")
        #expect(try scene.lines() == ["\(one.pid) foreground person", "\(other.pid) foreground shell"])
        try scene.lifecycle("release")
        #expect(try scene.lines() == ["\(one.pid) background shell", "\(other.pid) foreground shell"])

        // The desktop goes away, and its facts with it.
        scene.leaveDesktop()
        try scene.wait(for: ["\(one.pid) foreground default", "\(other.pid) foreground default"])
        try scene.waitForStatus("shell    off   4 facts: the program that called SetForeground has left")
    }

    @Test(arguments: busKinds)
    func `what an agent has not done when another takes over is refused as unanswered, not by the observer`(
        kind: BusKind
    ) throws {
        let scene = try AgentBus(kind)
        let (observer, caller) = (
            try RawBusClient(address: scene.bus.address), try RawBusClient(address: scene.bus.address)
        )
        try #require(try observer.register(["com.example.a"]).kind == .reply)
        let serial = try caller.begin(observer.uniqueName, "background")
        let order = try observer.readCall()
        try #require(order.member == "SetState")
        try scene.halt()
        // It takes over at once: the agent that has been halted gives up after five seconds.
        let successor = try RawBusClient(address: scene.bus.address)
        var name = RawBody()
        name.append("org.notifybus.Agent1")
        // REPLACE_EXISTING
        name.append(2 as UInt32)
        try #require(try successor.callBus("RequestName", signature: "su", body: name.bytes).uint32 == 1)
        // An observer that knows the new agent obeys no other.
        var answer = RawMessage(.error)
        answer.destination = order.sender
        answer.replySerial = order.serial
        answer.errorName = "org.freedesktop.DBus.Error.AccessDenied"
        try observer.send(answer)
        try observer.callBus("GetId")
        scene.agent.send(signal: SIGCONT)
        #expect(try caller.answer(to: serial).errorName == "org.freedesktop.DBus.Error.NoReply")
    }

    @Test(arguments: busKinds)
    func `if nobody opts in the focus is reported but affects nobody; an exempt application stays in front`(
        kind: BusKind
    )
        throws
    {
        let scene = try Scene(kind, configuration: "exempt = app:org.example.None\n")
        let observer = try scene.startObserver()
        try scene.setForeground(1)
        try scene.waitForStatus("shell    live  1 fact: process 1")
        #expect(try scene.lines() == ["\(observer.pid) foreground default"])
        try scene.setForeground(observer.pid)
        try scene.waitForStatus("shell    live  2 facts")
        let json = try scene.lifecycle("list", "--json")
        #expect(json.contains(#""decider":"default","focused":true"#))
    }

    @Test(arguments: busKinds)
    func `a program that opts in follows the desktop, and its own report overrides that`(kind: BusKind) throws {
        let scene = try Scene(kind)
        let program = try RawBusClient(address: scene.bus.address)
        #expect(try program.register(["com.example.a"], followsDesktop: true).string == "foreground")
        try scene.setForeground(1)
        #expect(try program.takeCall("SetState").string == "background")
        try scene.wait(for: ["\(getpid()) background shell"])
        _ = try program.callAgent("FollowDesktop", signature: "b", body: [0, 0, 0, 0])
        #expect(try program.takeCall("SetState").string == "foreground")
        try scene.wait(for: ["\(getpid()) foreground default"])
        _ = try program.callAgent("FollowDesktop", signature: "b", body: [1, 0, 0, 0])
        #expect(try program.takeCall("SetState").string == "background")
        var message = RawMessage(.call)
        message.destination = "org.notifybus.Agent1"
        message.path = "/org/notifybus/Agent1"
        message.interface = "org.notifybus.Agent1"
        message.member = "Report"
        message.signature = "s"
        message.body = RawBusClient.stringBody("foreground")
        let serial = try program.send(message)
        #expect(try program.takeCall("SetState").string == "foreground")
        #expect(try program.answer(to: serial).kind == .reply)
        try scene.wait(for: ["\(getpid()) foreground program"])
        // A new connection of the process begins in the same state.
        #expect(try RawBusClient(address: scene.bus.address).register(["com.example.a"]).string == "foreground")
    }

    @Test(arguments: busKinds)
    func `a new agent learns from the observers who had decided`(kind: BusKind) throws {
        let scene = try Scene(kind, configuration: "focus = background\n")
        let (kept, followed) = (try scene.startObserver(), try scene.startObserver())
        // If there is no new agent within 2 seconds, observers forget.
        let isInTime = try waitUntil {
            try scene.lifecycle("background", "\(kept.pid)")
            try scene.setForeground(1)
            try scene.wait(for: ["\(kept.pid) background person", "\(followed.pid) background shell"])
            let began = ContinuousClock.now
            try scene.restartAgent()
            try #require(try waitUntil { try scene.lines().count == 2 })
            return ContinuousClock.now - began < .seconds(2)
        }
        guard isInTime else { return print("This machine is too busy to start an agent within 2 seconds.") }
        // The new agent doesn't know the desktop's facts; the person's decision still counts.
        try scene.wait(for: ["\(kept.pid) background person", "\(followed.pid) foreground default"])
        try scene.lifecycle("release")
        #expect(try scene.lines() == ["\(kept.pid) foreground default", "\(followed.pid) foreground default"])
    }

    @Test(arguments: busKinds)
    func `a new agent leaves programs in the foreground that were not moved to the background`(kind: BusKind) throws {
        let scene = try Scene(kind, configuration: "focus = background\n")
        let observer = try scene.startObserver()
        try scene.restartAgent()
        try scene.wait(for: ["\(observer.pid) foreground default"])
        try scene.setForeground(1)
        try scene.wait(for: ["\(observer.pid) background shell"])
    }

    @Test(.enabled(if: geteuid() == 0, "only root can become another user"), arguments: busKinds)
    func `another user can neither release nor set the focus`(kind: BusKind) throws {
        let scene = try Scene(kind)
        let observer = try scene.startObserver()
        try scene.lifecycle("background", "\(observer.pid)")
        for call in [["Release", "string:pid:\(observer.pid)"], ["SetForeground", "uint32:\(observer.pid)"]] {
            let result = try asNobody(scene.bus.address, call[0], call[1])
            #expect(result.status != 0 && result.errorOutput.contains("AccessDenied"), "\(result.errorOutput)")
        }
        // Everyone means all of the caller's own.
        let all = try asNobody(scene.bus.address, "Release", "string:")
        #expect(all.status == 0 && all.output.contains("uint32 0"), "\(all.errorOutput)")
        #expect(try scene.lines() == ["\(observer.pid) background person"])
    }

    private func asNobody(_ address: String, _ member: String, _ argument: String) throws -> CommandResult {
        try run(
            "setpriv",
            [
                "--reuid", "65534", "--regid", "65534", "--clear-groups", "dbus-send", "--bus=\(address)",
                "--print-reply", "--dest=org.notifybus.Agent1", "/org/notifybus/Agent1",
                "org.notifybus.Agent1.\(member)", argument,
            ]
        )
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What notify-wait says about the agent, with -v and when its time is up.
@Suite struct AgentReportTests {
    /// Starts a `notify-wait -v` that finds the bus as its session bus, and returns what it says until something comes.
    private func said(on bus: PrivateBus, _ arguments: [String], until text: String) throws -> String {
        let waiting = try start(
            productPath("notify-wait"),
            arguments,
            environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address, "NOTIFYBUS_ADDRESS": nil]
        )
        defer { waiting.send(signal: SIGTERM) }
        return try waiting.waitForErrorOutput(containing: text)
    }

    /// An agent that has its name, and stands still.
    private func stoppedAgent(on bus: PrivateBus) throws -> RunningCommand {
        let agent = try start(productPath("notify-agent"), ["--address", bus.address], environment: withoutDesktop)
        try agent.waitForErrorOutput(containing: "ready")
        agent.send(signal: SIGSTOP)
        try #require(waitUntil { processState(agent.pid) == "T" })
        return agent
    }

    @Test(arguments: anyBusKind())
    func `an agent that did not answer is named with -v, and where to look`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try stoppedAgent(on: bus)
        defer { agent.send(signal: SIGKILL) }
        let hint = "see 'systemctl --user status notify-agent'\n"
        let live = "notify-wait: the observer is live\n"
        #expect(
            try said(on: bus, ["-v", "-f", "a"], until: hint)
                == live + "notify-wait: the lifecycle agent did not answer; until it does, every post is heard; " + hint
        )
        // On another bus, the command does not know how its agent was started.
        let waiting = try bus.startWaiting(["-v", "-f", "a"])
        #expect(
            try waiting.waitForErrorOutput(containing: "heard\n")
                == live + "notify-wait: the lifecycle agent did not answer; until it does, every post is heard\n"
        )
    }

    @Test(arguments: anyBusKind())
    func `when the time is up before the agent has answered, the bus is not blamed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try stoppedAgent(on: bus)
        defer { agent.send(signal: SIGKILL) }
        // On a busy machine the time may be up before the agent is asked.
        let result = try inTime {
            try run(
                productPath("notify-wait"),
                ["-t", "1s", "a"],
                environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address, "NOTIFYBUS_ADDRESS": nil]
            )
        } unless: {
            $0.errorOutput.contains("the bus did not answer")
        }
        #expect(result.status == 2)
        #expect(
            result.errorOutput == "notify-wait: timed out after 0 notifications; the lifecycle agent did not "
                + "answer; see 'systemctl --user status notify-agent'\n"
        )
    }

    @Test(arguments: anyBusKind())
    func `an agent that refuses is named with its reason, and none at all isn't worth a word`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let live = "notify-wait: the observer is live\n"
        let alone = try bus.startWaiting(["-v", "a"])
        try bus.makeCenter().postOnceConnected("a")
        #expect(try alone.wait().errorOutput == live)
        // This one takes no descriptors, and the bus says so in its place.
        let agent = try FakeAgent(on: bus)
        let waiting = try bus.startWaiting(["-v", "a"])
        let words = try waiting.waitForErrorOutput(containing: "notify-wait: the lifecycle agent is not used: ")
        #expect(words.hasPrefix(live))
        #expect(agent.calls.count == 0)
    }

    @Test(arguments: busKinds)
    func `without an agent, -v says that an event is not posted, and how to start one`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let live = "notify-wait: the observer is live\n"
        let advice = "; start one with notify-agent --address '\(bus.address)'\n"
        let one = try bus.startWaiting(["-v", "com.apple.screenIsLocked", "end"])
        let three = try bus.startWaiting([
            "-v", "org.notifybus.session.lock", "end", "com.apple.system.hostname", "com.apple.system.timezone",
        ])
        let quiet = try bus.startWaiting(["com.apple.screenIsLocked", "end"])
        // Nothing but this command, and no program, posts these.
        let literal = try bus.startWaiting(["-v", "org.notifybus.session.locks", "end"])
        try bus.makeCenter().postOnceConnected("end")
        #expect(
            try one.wait().errorOutput == live
                + "notify-wait: no lifecycle agent runs on this bus, so 'com.apple.screenIsLocked' is not posted"
                + advice
        )
        #expect(
            try three.wait().errorOutput == live
                + "notify-wait: no lifecycle agent runs on this bus, so 'org.notifybus.session.lock', "
                + "'com.apple.system.hostname' and 'com.apple.system.timezone' are not posted" + advice
        )
        #expect(try quiet.wait().errorOutput == "")
        #expect(!(try literal.wait().errorOutput.contains("agent")))
        // The session's and the system's need no address.
        let hint = "; start one with notify-agent\n"
        #expect(try said(on: bus, ["-v", "com.apple.screenIsLocked"], until: "agent\n").hasSuffix("not posted" + hint))
    }

    @Test(arguments: anyBusKind())
    func `an event that an agent that is not used would post is named, too`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        // It takes no descriptors, and the bus says so in its place.
        let agent = try FakeAgent(on: bus)
        let waiting = try bus.startWaiting(["-v", "com.apple.screenIsLocked"])
        let end = "notify-wait: 'com.apple.screenIsLocked' is not posted without the agent\n"
        let words = try waiting.waitForErrorOutput(containing: end)
        #expect(words.contains("notify-wait: the lifecycle agent is not used: "))
        #expect(agent.calls.count == 0)
    }

    /// dbus-broker would ask systemd.
    @Test func `an agent that the bus starts on demand is not said to be missing`() throws {
        let services = try TemporaryFolder()
        let program = try serviceWord(productPath("notify-agent"))
        try services.write(
            "[D-BUS Service]\nName=org.notifybus.Agent1\nExec=\(program)\n",
            to: "org.notifybus.Agent1.service"
        )
        let bus = try PrivateBus(
            .daemon,
            policy: PrivateBus.openPolicy + "<servicedir>\(services.path)</servicedir>"
        )
        let waiting = try bus.startWaiting(["-v", "com.apple.system.hostname", "end"])
        try bus.makeCenter().postOnceConnected("end")
        #expect(try waiting.wait().errorOutput == "notify-wait: the observer is live\n")
        #expect(try bus.lifecycle("status").status == 0)
    }

    @Test(arguments: anyBusKind())
    func `an event whose source is off, or not used, is named with -v, and one that is posted isn't`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        try folder.write("ignore = timezone\n", to: "agent.conf")
        let agent = try start(
            productPath("notify-agent"),
            ["--address", bus.address, "--config", folder.path + "/agent.conf"],
            // There is no machine's bus, and so no logind.
            environment: withoutDesktop.merging(["DBUS_SYSTEM_BUS_ADDRESS": nowhere]) { $1 }
        )
        try agent.waitForErrorOutput(containing: "ready")
        let waiting = try bus.startWaiting([
            "-v", "com.apple.system.timezone", "org.notifybus.system.willsleep", "com.apple.system.hostname", "end",
        ])
        try bus.makeCenter().postOnceConnected("end")
        let lines = try waiting.wait().errorOutput.split(separator: "\n").dropFirst().sorted()
        #expect(lines.count == 2, "\(lines)")
        #expect(
            lines.first?.hasPrefix(
                "notify-wait: 'com.apple.system.timezone' is not posted here: the agent does not use its source 'timezone'"
            ) == true
        )
        #expect(
            lines.last?.hasPrefix(
                "notify-wait: 'org.notifybus.system.willsleep' is not posted at present: its source 'sleep' is off: "
            ) == true
        )
    }
}

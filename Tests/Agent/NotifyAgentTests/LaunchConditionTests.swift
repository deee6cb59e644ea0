// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// `when =` of launch.d. systemd's user manager is real; logind and UPower are python3-dbusmock's.
@Suite(
    .enabled(if: MockLogind.isInstalled, "python3-dbusmock is not installed"),
    .disabled(if: UserSession.obstacle != nil, "a session of systemd's takes root, systemd and control groups")
)
struct LaunchConditionTests {
    /// - Returns: whether UPower is there.
    @discardableResult
    private func setOnBattery(_ isOnBattery: Bool, on bus: PrivateBus) throws -> Bool {
        try run(
            "busctl",
            [
                "--address=\(bus.address)", "call", "org.freedesktop.UPower", "/org/freedesktop/UPower",
                "org.freedesktop.DBus.Mock", "UpdateProperties", "sa{sv}", "org.freedesktop.UPower", "1", "OnBattery",
                "b", "\(isOnBattery)",
            ]
        ).status == 0
    }

    @Test(arguments: busKinds)
    func `idle and on mains runs once both are so, in each order, and nothing wakes before`(kind: BusKind) throws {
        let logind = try MockLogind()
        try logind.addSession("2", user: geteuid())
        let upower = try start(
            python,
            ["-m", "dbusmock", "--system", "--template", "upower"],
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": logind.bus.address, "DISPLAY": nil],
            output: .null
        )
        defer { upower.send(signal: SIGTERM) }
        try #require(waitUntil { (try? setOnBattery(true, on: logind.bus)) == true })
        let session = try UserSession(kind)
        try session.entry(
            "job",
            "name = org.notifybus.session.idle",
            "when = org.notifybus.session.idle",
            "when = com.apple.system.powersources.source",
            "when = !org.notifybus.system.willsleep",
            "run = sh -c 'echo run >>$HOME/runs'"
        )
        try session.startAgent("DBUS_SYSTEM_BUS_ADDRESS='\(logind.bus.address)'")
        try session.until("[[ $(notify-state -v com.apple.system.powersources.source 2>&1) == 0 ]]")
        try logind.setIdle("2", true)
        try session.until("[[ $(notify-state org.notifybus.session.idle) == 1 ]]")
        #expect(try session.agentSleeps(through: "pause 0.5"))
        #expect(try session.lines("runs") == 0 && session.field("due", of: "job") == "1")
        try setOnBattery(false, on: logind.bus)
        try session.until("has runs 1")
        // The other way round.
        try logind.setIdle("2", false)
        try setOnBattery(true, on: logind.bus)
        try session.until("[[ $(notify-state com.apple.system.powersources.source) == 0 ]]")
        try setOnBattery(false, on: logind.bus)
        try session.until("[[ $(notify-state com.apple.system.powersources.source) == 1 ]]")
        #expect(try session.agentSleeps(through: "pause 0.5"))
        #expect(try session.lines("runs") == 1)
        try logind.setIdle("2", true)
        try session.until("has runs 2")
        #expect(try session.field("starts", of: "job") == "2")
    }

    @Test(arguments: anyBusKind())
    func `a state that a program sets counts, and one that it can't have is named by --check`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.entry(
            "job",
            "name = com.example.go",
            "when = com.example.ready",
            "when = ! com.example.busy",
            "run = sh -c 'echo run >>$HOME/runs'"
        )
        try session.startAgent()
        try session.shell("notify-post com.example.go")
        try session.until("[[ $(notify-lifecycle launches --json) == *'\"due\":1'* ]]")
        #expect(try session.lines("runs") == 0)
        try session.shell("notify-state set com.example.busy 1; notify-state add com.example.ready 1")
        try session.shell("notify-state swap com.example.busy 1 0")
        try session.until("has runs 1")
        try session.shell("notify-state set com.example.ready 0; notify-post com.example.go")
        try session.entry("wrong", "name = com.x*", "when = com.apple.system.timezone", "run = true")
        let text = try session.shell("notify-agent --check")
        #expect(text.contains("wrong.conf: 'com.x*' is a name; only .* at the end is a pattern\n"))
        #expect(text.contains("wrong.conf: 'com.apple.system.timezone' has no state, so nothing can depend on it\n"))
        #expect(try session.lines("runs") == 1)
        try session.entry("pattern", "name = com.example.*", "when = com.example.*", "run = true")
        let other = try session.shell("notify-agent --check")
        #expect(other.contains("pattern.conf: 'when' takes a name, and 'com.example.*' is a pattern\n"))
        #expect(!other.contains("'com.example.*' is a name"))
    }
}

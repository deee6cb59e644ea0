// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// How long sleep is delayed. The bus daemons, the agent and systemd's user manager are real; logind is
/// python3-dbusmock's.
@Suite(
    .enabled(if: MockLogind.isInstalled, "python3-dbusmock is not installed"),
    .disabled(if: UserSession.obstacle != nil, "a session of systemd's takes root, systemd and control groups")
)
struct SleepTests {
    /// An agent that starts a unit for `willsleep`. The unit ends once a certain file exists.
    private func makeSession(_ kind: BusKind, _ logind: MockLogind, longestDelay: UInt64) throws -> UserSession {
        try logind.addSession("2", user: geteuid())
        try logind.setLongestDelay(microseconds: longestDelay)
        let session = try UserSession(kind)
        try session.unit(
            "save.service",
            "[Service]",
            "Type=oneshot",
            "ExecStart=/bin/sh -c 'until [ -e $HOME/finish ]; do sleep 0.05; done'"
        )
        try session.entry("save", "name = org.notifybus.system.willsleep", "start = save.service")
        try session.startAgent("DBUS_SYSTEM_BUS_ADDRESS='\(logind.bus.address)'")
        #expect(try waitUntil { try logind.delays() == ["sleep"] })
        return session
    }

    @Test(arguments: anyBusKind())
    func `sleep waits until everything that launch.d started for it has ended`(kind: BusKind) throws {
        let logind = try MockLogind()
        let session = try makeSession(kind, logind, longestDelay: 300_000_000)
        try logind.prepareForSleep(true)
        try session.waitFor("starting", of: "save")
        // Observers have a second; this takes longer.
        try passTime("1.5s")
        #expect(try logind.delays() == ["sleep"])
        try session.shell(": >\"$HOME/finish\"")
        #expect(try waitUntil { try logind.delays().isEmpty })
        try session.waitFor("idle", of: "save")
        try logind.prepareForSleep(false)
        #expect(try waitUntil { try logind.delays() == ["sleep"] })
    }

    @Test(arguments: anyBusKind())
    func `a program that hangs doesn't prevent sleep`(kind: BusKind) throws {
        let logind = try MockLogind()
        let session = try makeSession(kind, logind, longestDelay: 2_000_000)
        try logind.prepareForSleep(true)
        #expect(try waitUntil { try logind.delays().isEmpty })
        try session.waitFor("starting", of: "save")
        try session.shell(": >\"$HOME/finish\"")
    }
}

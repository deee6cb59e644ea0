// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Both bus daemons, the agent and the observers are real. logind is python3-dbusmock's.
@Suite(.enabled(if: MockLogind.isInstalled, "python3-dbusmock is not installed"))
struct LoginEventTests {
    private static let lock: NotifyName = "org.notifybus.session.lock"
    private static let rounds = isLongRun ? 1_000 : 15

    private func makeScene(_ kind: BusKind, _ logind: MockLogind, _ configuration: String = "") throws -> EventScene {
        try logind.addSession("2", user: geteuid())
        return try EventScene(
            kind,
            configuration: configuration,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": logind.bus.address]
        )
    }

    @Test(arguments: anyBusKind(), ["", "session = background\n"])
    func `locking and unlocking are heard once each, even by a program that is in the background in between`(
        kind: BusKind,
        configuration: String
    ) throws {
        let logind = try MockLogind()
        let scene = try makeScene(kind, logind, configuration)
        let all = try scene.observe(Self.lock)
        let locked = try scene.observe("com.apple.screenIsLocked")
        let unlocked = try scene.observe("com.apple.screenIsUnlocked")
        #expect(try waitUntil { try scene.state(of: "org.notifybus.session.active") == 1 })
        let goesAway = !configuration.isEmpty
        for round in 1...Self.rounds {
            try logind.setLocked("2", true)
            try #require(locked.heard.wait(for: round) && all.heard.wait(for: 2 * round - 1), "round \(round)")
            #expect(try scene.state(of: Self.lock) == 1)
            if goesAway { try #require(waitUntil { scene.center.lifecycle.state == .background }) }
            try logind.setLocked("2", false)
            try #require(unlocked.heard.wait(for: round) && all.heard.wait(for: 2 * round), "round \(round)")
            #expect(scene.center.lifecycle.state == .foreground)
            #expect(try scene.state(of: "com.apple.springboard.lockstate") == 0)
        }
        #expect(all.heard.value == 2 * Self.rounds)
        #expect(locked.heard.value == Self.rounds && unlocked.heard.value == Self.rounds)
        for each in [all.observation, locked.observation, unlocked.observation] { each.cancel() }
    }

    @Test(arguments: anyBusKind())
    func `the state of the first name that is observed waits for logind's answer`(kind: BusKind) throws {
        let logind = try MockLogind()
        let scene = try makeScene(kind, logind)
        let active: NotifyName = "org.notifybus.session.active"
        let observation = try scene.center.addObserver(for: active, timeout: .seconds(25)) { _ in }
        let begin = ContinuousClock.now
        let state = try scene.state(of: active)
        // The agent waits for a second.
        #expect(state == 1 || ContinuousClock.now - begin >= .seconds(1))
        observation.cancel()
    }

    @Test(arguments: busKinds, ["Sleep", "Shutdown"])
    func `what begins while logind is asked for its sessions is posted`(kind: BusKind, what: String) throws {
        let logind = try MockLogind()
        // It speaks before it answers.
        let code = "self.EmitSignal('org.freedesktop.login1.Manager', 'PrepareFor\(what)', 'b', [True])\nret = []"
        try logind.replace("ListSessions", "", "a(susso)", by: code)
        let scene = try makeScene(kind, logind)
        let name: NotifyName = what == "Sleep" ? "org.notifybus.system.willsleep" : "org.notifybus.system.willshutdown"
        let one = try scene.observe(name)
        #expect(one.heard.wait(for: 1))
        #expect(try scene.state(of: name) == 1)
        one.observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `sessions that begin, become inactive or idle are one post each`(kind: BusKind) throws {
        let logind = try MockLogind()
        let scene = try makeScene(kind, logind)
        let active = try scene.observe("org.notifybus.session.active")
        let idle = try scene.observe("org.notifybus.session.idle")
        let sessions = try scene.observe("org.notifybus.system.sessions")
        #expect(try waitUntil { try scene.state(of: "org.notifybus.system.sessions") == 1 })
        #expect(try scene.state(of: "org.notifybus.session.active") == 1)
        try logind.addSession("9", user: 4_000_000)
        #expect(sessions.heard.wait(for: 1))
        #expect(try scene.state(of: "org.notifybus.system.sessions") == 2)
        try logind.setIdle("2", true)
        #expect(idle.heard.wait(for: 1))
        #expect(try scene.state(of: "org.notifybus.session.idle") == 1)
        try logind.setActive("2", false)
        #expect(active.heard.wait(for: 1))
        #expect(try scene.state(of: "org.notifybus.session.active") == 0)
        #expect([active.heard.value, idle.heard.value, sessions.heard.value] == [1, 1, 1])
        for each in [active.observation, idle.observation, sessions.observation] { each.cancel() }
    }

    @Test(arguments: anyBusKind())
    func `sleep is delayed by a second while it has an observer`(kind: BusKind) throws {
        let logind = try MockLogind()
        let scene = try makeScene(kind, logind)
        let other = try scene.observe("org.notifybus.system.didwake")
        #expect(try scene.status().contains("org.notifybus.system.didwake"))
        #expect(try logind.delays().isEmpty)
        let sleep = try scene.observe("org.notifybus.system.willsleep")
        let end = try scene.observe("org.notifybus.system.willshutdown")
        #expect(try waitUntil { try logind.delays() == ["sleep", "shutdown"] })
        for round in 1...2 {
            try logind.prepareForSleep(true)
            #expect(sleep.heard.wait(for: round))
            #expect(try scene.state(of: "org.notifybus.system.willsleep") == 1)
            #expect(try waitUntil { try !logind.delays().contains("sleep") })
            try logind.prepareForSleep(false)
            #expect(other.heard.wait(for: round))
            #expect(try scene.state(of: "org.notifybus.system.willsleep") == 0)
            #expect(try waitUntil { try logind.delays() == ["sleep", "shutdown"] })
        }
        try logind.prepareForShutdown(true)
        #expect(end.heard.wait(for: 1))
        #expect(try scene.state(of: "org.notifybus.system.willshutdown") == 1)
        #expect([sleep.heard.value, other.heard.value, end.heard.value] == [2, 2, 1])
        for each in [sleep.observation, other.observation, end.observation] { each.cancel() }
    }

    /// As elogind does, up to 640 ms apart: https://github.com/elogind/elogind/issues/376 and 380.
    @Test(arguments: anyBusKind())
    func `what logind says twice is one post each`(kind: BusKind) throws {
        let logind = try MockLogind()
        let scene = try makeScene(kind, logind)
        let sleep = try scene.observe("org.notifybus.system.willsleep")
        let wake = try scene.observe("org.notifybus.system.didwake")
        let idle = try scene.observe("org.notifybus.session.idle")
        #expect(try waitUntil { try logind.delays().contains("sleep") })
        for round in 1...4 {
            try logind.prepareForSleep(true)
            // At once, and when sleep is no longer delayed.
            if round.isMultiple(of: 2) { #expect(try waitUntil { try !logind.delays().contains("sleep") }) }
            try logind.prepareForSleep(true)
            #expect(sleep.heard.wait(for: round))
            #expect(try waitUntil { try !logind.delays().contains("sleep") })
            try logind.prepareForSleep(false)
            if round.isMultiple(of: 2) { #expect(try waitUntil { try logind.delays().contains("sleep") }) }
            try logind.prepareForSleep(false)
            #expect(wake.heard.wait(for: round))
            #expect(try waitUntil { try logind.delays().contains("sleep") })
            // A later fact shows that there is nothing more to come.
            try logind.setIdle("2", !round.isMultiple(of: 2))
            #expect(idle.heard.wait(for: round))
            #expect([sleep.heard.value, wake.heard.value] == [round, round])
        }
        for each in [sleep.observation, wake.observation, idle.observation] { each.cancel() }
    }

    /// As in a frozen user.slice: systemd thaws it after it has sent both signals.
    @Test(arguments: anyBusKind())
    func `an agent that had no turn while the machine slept posts that it has woken`(kind: BusKind) throws {
        let logind = try MockLogind()
        let scene = try makeScene(kind, logind)
        let sleep = try scene.observe("org.notifybus.system.willsleep")
        let wake = try scene.observe("org.notifybus.system.didwake")
        #expect(try waitUntil { try logind.delays().contains("sleep") })
        // The first state that it learns is no news.
        #expect(try waitUntil { try scene.state(of: "org.notifybus.session.active") == 1 })
        for round in 1...3 {
            try scene.pause()
            try logind.prepareForSleep(true)
            try logind.prepareForSleep(false)
            kill(scene.process, SIGCONT)
            #expect(wake.heard.wait(for: round))
            #expect(try scene.state(of: "org.notifybus.system.willsleep") == 0)
        }
        #expect(wake.heard.value == 3)
        // The next one is posted and delayed.
        let before = sleep.heard.value
        #expect(try waitUntil { try logind.delays().contains("sleep") })
        try logind.prepareForSleep(true)
        #expect(sleep.heard.wait(for: before + 1))
        #expect(try waitUntil { try !logind.delays().contains("sleep") })
        for each in [sleep.observation, wake.observation] { each.cancel() }
    }

    @Test func `without logind the states are 0; once it is back, what has changed is posted`() throws {
        let logind = try MockLogind()
        let scene = try makeScene(.daemon, logind)
        let lock = try scene.observe(Self.lock)
        #expect(try waitUntil { try scene.state(of: "org.notifybus.session.active") == 1 })
        try logind.setLocked("2", true)
        #expect(lock.heard.wait(for: 1))
        try logind.kill()
        #expect(try waitUntil { try scene.state(of: Self.lock) == 0 })
        #expect(try scene.status().contains("systemd-logind went away"))
        try logind.restart()
        try logind.addSession("2", user: geteuid())
        // It was locked before, so this is a change.
        #expect(lock.heard.wait(for: 2))
        #expect(try scene.state(of: Self.lock) == 0)
        try logind.setLocked("2", true)
        #expect(lock.heard.wait(for: 3))
        #expect(try scene.state(of: Self.lock) == 1)
        #expect(lock.heard.value == 3)
        lock.observation.cancel()
    }
}

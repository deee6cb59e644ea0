// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import Testing

@testable import NotifyCoordinator

/// What is posted of the login session, as values.
@Suite struct LoginEventsTests {
    private func state(_ change: (inout LoginState) -> Void = { _ in }) -> LoginState {
        var state = LoginState()
        state.isActive = true
        change(&state)
        return state
    }

    private func fact(_ name: NotifyName, _ value: UInt64) -> EventChange {
        EventChange(name, state: value, isPosted: false)
    }

    private func posted(_ name: NotifyName, _ value: UInt64) -> EventChange { EventChange(name, state: value) }

    /// What follows when logind says one thing after another.
    private func changes(from old: LoginState, to new: LoginState) -> LoginEvents.Changes {
        var events = LoginEvents()
        _ = events.take(old)
        return events.take(new)
    }

    @Test func `what happens while logind is asked for the first time is posted, and what was so before is not`() {
        func first(_ found: (inout Logins) -> Void = { _ in }, _ meanwhile: (inout Logins) -> Void) -> [NotifyName] {
            var (events, logins) = (LoginEvents(), Logins())
            found(&logins)
            logins.find()
            meanwhile(&logins)
            logins.find()
            let changes = events.take(LoginState(logins, of: 1_000))
            return (changes.before + changes.after).filter(\.isPosted).map(\.name)
        }
        #expect(first { $0.fallAsleep() } == [LoginEvents.willSleep])
        #expect(first { $0.isShuttingDown = true } == [LoginEvents.willShutDown])
        let isBrief = first {
            $0.fallAsleep()
            $0.wake()
        }
        #expect(isBrief == [LoginEvents.didWake])
        #expect(first({ $0.fallAsleep() }, { _ in }) == [])
        #expect(first({ $0.isShuttingDown = true }, { _ in }) == [])
        #expect(first({ $0.fallAsleep() }, { $0.wake() }) == [LoginEvents.didWake])
    }

    @Test func `a screen saver that speaks before logind makes nothing else a change`() {
        var events = LoginEvents()
        _ = events.take(isSaverActive: true)
        let (before, after) = events.take(state { ($0.people, $0.isIdle) = (["2"], true) })
        #expect((before + after).filter(\.isPosted) == [])
        #expect(events.state?.isLocked == true)
    }

    @Test func `what logind says first is known without a post, and what it repeats is not said again`() {
        var events = LoginEvents()
        #expect(events.state == nil)
        let first = state { ($0.isIdle, $0.people) = (true, ["2", "3"]) }
        let all = [
            fact(LoginEvents.lock, 0), fact(LoginEvents.active, 1), fact(LoginEvents.idle, 1),
            fact(LoginEvents.sessions, 2), fact(LoginEvents.willSleep, 0), fact(LoginEvents.willShutDown, 0),
        ]
        #expect(events.take(first) == (all, []))
        #expect(events.state == first)
        #expect(events.take(first) == ([], []))
        let other = state { ($0.isActive, $0.isLocked, $0.isAsleep, $0.isShuttingDown) = (false, true, true, true) }
        #expect(
            LoginEvents.facts(other) == [
                fact(LoginEvents.lock, 1), fact(LoginEvents.active, 0), fact(LoginEvents.idle, 0),
                fact(LoginEvents.sessions, 0), fact(LoginEvents.willSleep, 1), fact(LoginEvents.willShutDown, 1),
            ]
        )
    }

    @Test func `what leads away is posted before the states change, and what leads back after that`() {
        let usual = state()
        let locked = state { $0.isLocked = true }
        #expect(changes(from: usual, to: locked) == ([posted(LoginEvents.lock, 1)], []))
        #expect(changes(from: locked, to: usual) == ([fact(LoginEvents.lock, 0)], [posted(LoginEvents.lock, 0)]))
        let inactive = state { $0.isActive = false }
        #expect(changes(from: usual, to: inactive) == ([posted(LoginEvents.active, 0)], []))
        #expect(changes(from: inactive, to: usual) == ([fact(LoginEvents.active, 1)], [posted(LoginEvents.active, 1)]))
        let ending = state { $0.isShuttingDown = true }
        #expect(changes(from: usual, to: ending) == ([posted(LoginEvents.willShutDown, 1)], []))
        #expect(
            changes(from: ending, to: usual)
                == ([fact(LoginEvents.willShutDown, 0)], [posted(LoginEvents.willShutDown, 0)])
        )
    }

    @Test func `sleep is posted under one name when it begins, and under another when it is over`() {
        let asleep = state { $0.isAsleep = true }
        #expect(changes(from: state(), to: asleep) == ([posted(LoginEvents.willSleep, 1)], []))
        #expect(
            changes(from: asleep, to: state())
                == ([fact(LoginEvents.willSleep, 0)], [EventChange(LoginEvents.didWake)])
        )
        // Both while the agent had no turn: that it was about to sleep is no news any more.
        let woken = state { ($0.sleeps, $0.wakes) = (1, 1) }
        #expect(
            changes(from: state(), to: woken)
                == ([fact(LoginEvents.willSleep, 0)], [EventChange(LoginEvents.didWake)])
        )
        // Woken without a word, and about to sleep again.
        let again = state { ($0.isAsleep, $0.sleeps, $0.wakes) = (true, 2, 1) }
        let first = state { ($0.isAsleep, $0.sleeps) = (true, 1) }
        #expect(
            changes(from: first, to: again)
                == ([EventChange(LoginEvents.didWake), posted(LoginEvents.willSleep, 1)], [])
        )
        #expect(changes(from: again, to: again) == ([], []))
        var logins = Logins()
        #expect(!logins.isEnding)
        logins.isShuttingDown = true
        #expect(logins.isEnding && LoginEvents.ending(logins) == LoginEvents.willShutDown)
        logins.isAsleep = true
        #expect(LoginEvents.ending(logins) == LoginEvents.willSleep)
        logins.isShuttingDown = false
        #expect(logins.isEnding)
    }

    @Test func `idleness and the sessions are posted at each change`() {
        let idle = state { $0.isIdle = true }
        #expect(changes(from: state(), to: idle) == ([posted(LoginEvents.idle, 1)], []))
        #expect(changes(from: idle, to: state()) == ([posted(LoginEvents.idle, 0)], []))
        let (one, two) = (state { $0.people = ["2"] }, state { $0.people = ["2", "c3"] })
        #expect(changes(from: one, to: two) == ([posted(LoginEvents.sessions, 2)], []))
        // As many, but others.
        #expect(changes(from: one, to: state { $0.people = ["4"] }) == ([posted(LoginEvents.sessions, 1)], []))
    }

    @Test func `what has changed while logind was away is posted when it is back, with everything else known anew`() {
        var events = LoginEvents()
        _ = events.take(state())
        events.loseLogind()
        let idle = state { $0.isIdle = true }
        #expect(events.take(idle) == (LoginEvents.facts(idle) + [posted(LoginEvents.idle, 1)], []))
        #expect(events.take(idle) == ([], []))
    }

    @Test func `a screen saver counts as the lock until logind has said once that the session is locked`() {
        var events = LoginEvents()
        #expect(events.take(isSaverActive: true) == ([fact(LoginEvents.lock, 1)], []))
        #expect(events.state?.isLocked == true)
        // Without logind everything but the lock is unknown.
        #expect(
            events.take(isSaverActive: false)
                == ([fact(LoginEvents.lock, 0), fact(LoginEvents.lock, 0)], [posted(LoginEvents.lock, 0)])
        )
        #expect(events.take(state()).before.starts(with: LoginEvents.facts(state())))
        #expect(events.take(isSaverActive: true) == ([posted(LoginEvents.lock, 1)], []))
        #expect(!events.hasHinted)
        // Now logind locks, too, and only it counts from now on.
        #expect(events.take(state { $0.isLocked = true }) == ([], []))
        #expect(events.hasHinted)
        #expect(events.take(isSaverActive: false) == ([], []))
        #expect(events.take(state()).after == [posted(LoginEvents.lock, 0)])
        #expect(events.take(isSaverActive: true) == ([], []))
    }

    @Test func `without logind the session no longer counts as locked`() {
        var events = LoginEvents()
        _ = events.take(state { $0.isLocked = true })
        events.loseLogind()
        #expect(events.take(isSaverActive: false).after == [posted(LoginEvents.lock, 0)])
    }

    @Test func `at rest everything is forgotten but that logind reports locks`() {
        var events = LoginEvents()
        _ = events.take(state { $0.isLocked = true })
        events.rest()
        #expect(events.state == nil && events.hasHinted)
        #expect(events.take(isSaverActive: true) == ([fact(LoginEvents.lock, 0)], []))
        var other = LoginEvents()
        _ = other.take(state())
        other.rest()
        #expect(!other.hasHinted)
    }

    // MARK: - Sessions

    private func session(
        of user: UInt32,
        _ type: String,
        active: Bool = true,
        locked: Bool = false,
        idle: Bool = false
    ) -> Logins.Session {
        var session = Logins.Session(user: user)
        (session.type, session.category, session.isActive) = (type, "user", active)
        (session.isLocked, session.isIdle) = (locked, idle)
        return session
    }

    @Test func `a user's graphical sessions count, or all of them if there is none`() {
        var logins = Logins()
        logins.people = ["2", "9"]
        var found = LoginState(logins, of: 1_000)
        #expect(!found.isLocked && !found.isActive && !found.isIdle && found.people == ["2", "9"])
        for type in ["x11", "wayland", "mir"] {
            logins.sessions = ["5": session(of: 1_000, "tty")]
            found = LoginState(logins, of: 1_000)
            #expect(!found.isLocked && found.isActive && !found.isIdle)
            logins.sessions["2"] = session(of: 1_000, type, active: false, locked: true, idle: true)
            found = LoginState(logins, of: 1_000)
            #expect(found.isLocked && !found.isActive && found.isIdle)
        }
        // One that is in use is enough.
        logins.sessions["3"] = session(of: 1_000, "x11")
        found = LoginState(logins, of: 1_000)
        #expect(!found.isLocked && found.isActive && !found.isIdle)
        #expect(LoginState(logins, of: nil) == LoginState(logins, of: 1_001))
        // Not the screen that asks for the password.
        logins.sessions = ["c1": session(of: 1_000, "x11")]
        logins.sessions["c1"]?.category = "greeter"
        #expect(!LoginState(logins, of: 1_000).isActive)
        // Nor only some kinds of a user's own.
        for category in ["", "user-early"] {
            logins.sessions["c1"]?.category = category
            #expect(LoginState(logins, of: 1_000).isActive, "\(category)")
        }
        (logins.isAsleep, logins.isShuttingDown) = (true, true)
        found = LoginState(logins, of: 1_000)
        #expect(found.isAsleep && found.isShuttingDown)
    }

    @Test func `eight sessions are shown, in the order of their numbers`() {
        var logins = Logins()
        #expect(logins.text == "no session")
        logins.sessions["10"] = session(of: 1_000, "x11", active: false)
        logins.sessions["9"] = session(of: 1_001, "tty", locked: true)
        logins.isAsleep = true
        #expect(
            logins.text
                == "session 9 of user 1001 active, locked; session 10 of user 1000 inactive; going to sleep"
        )
        logins.isAsleep = false
        for number in 1...6 { logins.sessions["\(number)"] = session(of: 1, "tty") }
        #expect(logins.text.hasPrefix("session 1 of user 1 active; ") && !logins.text.contains("more"))
        logins.sessions["7"] = session(of: 1, "tty")
        #expect(logins.text.hasSuffix("session 9 of user 1001 active, locked; and 1 more"))
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyEvents
import NotifyNames

/// The events derived from logind's facts. They are ordered relative to the state changes caused by the same facts:
/// programs about to be put in the background are notified before, and those that come back are notified after.
struct LoginEvents {
    static let lock: NotifyName = "org.notifybus.session.lock"
    static let active: NotifyName = "org.notifybus.session.active"
    static let idle: NotifyName = "org.notifybus.session.idle"
    static let sessions: NotifyName = "org.notifybus.system.sessions"
    static let willSleep: NotifyName = "org.notifybus.system.willsleep"
    static let didWake: NotifyName = "org.notifybus.system.didwake"
    static let willShutDown: NotifyName = "org.notifybus.system.willshutdown"

    /// What each source reports.
    static let names: [SystemEvent.Source: [NotifyName]] = [
        .locker: [lock], .logind: [active, idle], .users: [sessions], .sleep: [willSleep, didWake, willShutDown],
    ]

    /// What is posted for the change in progress.
    static func ending(_ logins: Logins) -> NotifyName { logins.isAsleep ? willSleep : willShutDown }

    /// nil until something has been reported.
    private(set) var state: LoginState?

    /// - Returns: what to post before and after the states have been changed accordingly.
    mutating func take(_ new: LoginState) -> (before: [EventChange], after: [EventChange]) {
        defer { state = new }
        guard let old = state else { return (LoginEvents.facts(new), []) }
        var (before, after): ([EventChange], [EventChange]) = ([], [])
        func note(_ name: NotifyName, _ key: KeyPath<LoginState, Bool>, leadsAway: Bool) {
            guard old[keyPath: key] != new[keyPath: key] else { return }
            let change = EventChange(name, state: new[keyPath: key] ? 1 : 0)
            if new[keyPath: key] == leadsAway { before.append(change) } else { after.append(change) }
        }
        note(LoginEvents.willShutDown, \.isShuttingDown, leadsAway: true)
        if new.isAsleep != old.isAsleep {
            if new.isAsleep {
                before.append(EventChange(LoginEvents.willSleep, state: 1))
            } else {
                before.append(EventChange(LoginEvents.willSleep, state: 0, isPosted: false))
                after.append(EventChange(LoginEvents.didWake))
            }
        }
        note(LoginEvents.lock, \.isLocked, leadsAway: true)
        note(LoginEvents.active, \.isActive, leadsAway: false)
        if old.isIdle != new.isIdle { before.append(EventChange(LoginEvents.idle, state: new.isIdle ? 1 : 0)) }
        if old.people != new.people {
            before.append(EventChange(LoginEvents.sessions, state: UInt64(new.people.count)))
        }
        // The value is known before the post is made.
        before += after.compactMap { change in
            change.state.map { EventChange(change.name, state: $0, isPosted: false) }
        }
        return (before, after)
    }

    /// The current state, without counting as a change.
    static func facts(_ state: LoginState) -> [EventChange] {
        func fact(_ name: NotifyName, _ value: UInt64) -> EventChange {
            EventChange(name, state: value, isPosted: false)
        }
        return [
            fact(lock, state.isLocked ? 1 : 0), fact(active, state.isActive ? 1 : 0), fact(idle, state.isIdle ? 1 : 0),
            fact(sessions, UInt64(state.people.count)), fact(willSleep, state.isAsleep ? 1 : 0),
            fact(willShutDown, state.isShuttingDown ? 1 : 0),
        ]
    }
}

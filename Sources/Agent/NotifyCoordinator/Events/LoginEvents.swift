// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// The events derived from logind's facts. They are ordered relative to the state changes caused by the same facts:
/// programs about to be put in the background are notified before, and those that come back are notified after.
package struct LoginEvents {
    package static let lock: NotifyName = "org.notifybus.session.lock"
    package static let active: NotifyName = "org.notifybus.session.active"
    package static let idle: NotifyName = "org.notifybus.session.idle"
    package static let sessions: NotifyName = "org.notifybus.system.sessions"
    package static let willSleep: NotifyName = "org.notifybus.system.willsleep"
    package static let didWake: NotifyName = "org.notifybus.system.didwake"
    package static let willShutDown: NotifyName = "org.notifybus.system.willshutdown"

    /// What each source reports.
    package static let names: [SystemEvent.Source: [NotifyName]] = [
        .locker: [lock], .logind: [active, idle], .users: [sessions], .sleep: [willSleep, didWake, willShutDown],
    ]

    /// What is posted for the change in progress.
    package static func ending(_ logins: Logins) -> NotifyName { logins.isAsleep ? willSleep : willShutDown }

    /// What is to be posted before and after the states have been changed accordingly.
    package typealias Changes = (before: [EventChange], after: [EventChange])

    /// What was said last; nil as long as nothing has been said.
    package private(set) var state: LoginState?
    /// Whether logind has said anything.
    private var hasBegun = false
    /// What logind says; nil while it says nothing.
    private var logind: LoginState?
    /// Whether logind has ever said that the session is locked: then screen savers do not count.
    package private(set) var hasHinted = false
    /// Whether a screen saver is active; nil as long as that is not known.
    private var isSaverActive: Bool?
    /// Whether the states are unknown to everyone else: then they are to be said even if nothing has changed.
    private var isAnew = true

    package init() {}

    /// logind has said something.
    package mutating func take(_ new: LoginState) -> Changes {
        logind = new
        if new.isLocked { hasHinted = true }
        return update()
    }

    /// A screen saver has begun or ended.
    package mutating func take(isSaverActive: Bool) -> Changes {
        self.isSaverActive = isSaverActive
        return update()
    }

    /// logind is away. Changes meanwhile are posted when it is back.
    package mutating func loseLogind() {
        logind = nil
        isAnew = true
    }

    /// Nothing is wanted.
    package mutating func rest() {
        let hasHinted = hasHinted
        self = LoginEvents()
        self.hasHinted = hasHinted
    }

    private mutating func update() -> Changes {
        let isComplete = logind != nil
        guard var new = logind ?? (isSaverActive == nil ? nil : state ?? LoginState()) else { return ([], []) }
        if !isComplete { new.isLocked = false }
        if !hasHinted, isSaverActive == true { new.isLocked = true }
        defer { (state, isAnew, hasBegun) = (new, isAnew && !isComplete, hasBegun || isComplete) }
        var old = state
        if isComplete, !hasBegun {
            // It may have changed since logind was asked. Of the rest only a screen saver has said anything.
            old = new.asFound
            if let state { old?.isLocked = state.isLocked }
        }
        var changes: Changes = old.map { LoginEvents.changes(from: $0, to: new) } ?? ([], [])
        if isAnew { changes.before = LoginEvents.facts(new) + changes.before }
        if isComplete { return changes }
        // A screen saver knows nothing else.
        return (
            changes.before.filter { $0.name == LoginEvents.lock }, changes.after.filter { $0.name == LoginEvents.lock }
        )
    }

    private static func changes(from old: LoginState, to new: LoginState) -> Changes {
        var (before, after): ([EventChange], [EventChange]) = ([], [])
        func note(_ name: NotifyName, _ key: KeyPath<LoginState, Bool>, leadsAway: Bool) {
            guard old[keyPath: key] != new[keyPath: key] else { return }
            let change = EventChange(name, state: new[keyPath: key] ? 1 : 0)
            if new[keyPath: key] == leadsAway { before.append(change) } else { after.append(change) }
        }
        note(LoginEvents.willShutDown, \.isShuttingDown, leadsAway: true)
        if new.isAsleep {
            // One that has woken and falls asleep again.
            if old.isAsleep, new.wakes != old.wakes { before.append(EventChange(LoginEvents.didWake)) }
            if !old.isAsleep || new.sleeps != old.sleeps {
                before.append(EventChange(LoginEvents.willSleep, state: 1))
            }
        } else if old.isAsleep || new.wakes != old.wakes {
            // Also if it fell asleep meanwhile, and the agent with it.
            before.append(EventChange(LoginEvents.willSleep, state: 0, isPosted: false))
            after.append(EventChange(LoginEvents.didWake))
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
    package static func facts(_ state: LoginState) -> [EventChange] {
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

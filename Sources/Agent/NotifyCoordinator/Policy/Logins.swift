// SPDX-License-Identifier: Apache-2.0

/// The login sessions of the machine, from logind. See org.freedesktop.login1(5).
package struct Logins: Hashable, Sendable {
    package struct Session: Hashable, Sendable {
        package var user: UInt32
        /// `x11`, `wayland`, `mir`, `tty` …
        package var type = ""
        /// `user`, `greeter`, `lock-screen`, `manager` …
        package var category = ""
        package var isActive = true
        package var isLocked = false
        package var isIdle = false

        package init(user: UInt32) {
            self.user = user
        }

        var isGraphical: Bool { type == "x11" || type == "wayland" || type == "mir" }
        /// Whether its user can be looking at it.
        var isAttended: Bool { isActive && !isLocked }
        /// Whether it is a user session.
        var isForPeople: Bool { category.isEmpty || category.utf8.starts(with: "user".utf8) }
    }

    /// By id.
    package var sessions: [String: Session] = [:]
    /// The IDs of the user sessions of all users.
    package var people: Set<String> = []
    package var isAsleep = false
    /// How often sleep has begun, and how often the machine has woken: several of these may come together.
    package var sleeps: UInt64 = 0
    package var wakes: UInt64 = 0
    package var isShuttingDown = false
    /// How long logind waits with both for those that delay them, in microseconds. It is five seconds where its
    /// configuration says nothing else.
    package var longestDelay: UInt64 = 5_000_000
    /// How sleep and shutdown were found at first.
    package private(set) var found: Ending?

    /// Sleep and shutdown at some time.
    package struct Ending: Hashable, Sendable {
        let isAsleep: Bool
        let sleeps, wakes: UInt64
        let isShuttingDown: Bool
    }

    package init() {}

    /// Sleep and shutdown are known. The first time, they are what was found; all that follows are changes.
    package mutating func find() {
        guard found == nil else { return }
        found = Ending(isAsleep: isAsleep, sleeps: sleeps, wakes: wakes, isShuttingDown: isShuttingDown)
    }

    package mutating func fallAsleep() {
        isAsleep = true
        sleeps += 1
    }

    package mutating func wake() {
        isAsleep = false
        wakes += 1
    }

    /// Whether sleep or shutdown has begun.
    package var isEnding: Bool { isAsleep || isShuttingDown }

    /// Whether no user can be looking at a process.
    ///
    /// A process in the cgroup of a session belongs to that session. Any other, such as one of the user's service
    /// manager, belongs to the user's graphical sessions or, if there are none, to all the user's sessions: it is
    /// enough if one is active and not locked. The process of a user without a session is a service, which no user ever
    /// looked at.
    package func areAway(from user: UInt32, session id: String?) -> Bool {
        if let id, let session = sessions[id], session.user == user { return !session.isAttended }
        let own = sessions.values.filter { $0.user == user && $0.isForPeople }
        let graphical = own.filter(\.isGraphical)
        let relevant = graphical.isEmpty ? own : graphical
        return !relevant.isEmpty && !relevant.contains(where: \.isAttended)
    }

    var text: String {
        let all = sessions.sorted { ($0.key.utf8.count, $0.key) < ($1.key.utf8.count, $1.key) }.map { id, session in
            "session \(id) of user \(session.user) " + (session.isActive ? "active" : "inactive")
                + (session.isLocked ? ", locked" : "")
        }
        let list = all.isEmpty ? "no session" : all.prefix(8).joined(separator: "; ")
        return list + (all.count > 8 ? "; and \(all.count - 8) more" : "") + (isAsleep ? "; going to sleep" : "")
    }
}

/// The state of the login sessions as it concerns one user, in numbers from which events are derived.
package struct LoginState: Equatable, Sendable {
    /// Of the user's graphical sessions or, if there are none, of all the user's sessions.
    package var isLocked = false
    package var isActive = false
    package var isIdle = false
    /// The sessions of all users that people work in.
    package var people: Set<String> = []
    package var isAsleep = false
    package var sleeps: UInt64 = 0
    package var wakes: UInt64 = 0
    package var isShuttingDown = false
    /// How sleep and shutdown were found at first; nil if just as they are.
    package var found: Logins.Ending?

    package init() {}

    /// The same, with sleep and shutdown as they were found at first.
    var asFound: LoginState {
        guard let found else { return self }
        var state = self
        (state.isAsleep, state.sleeps, state.wakes) = (found.isAsleep, found.sleeps, found.wakes)
        state.isShuttingDown = found.isShuttingDown
        return state
    }

    /// - Parameter user: the owner of the sessions; nil if those of one user are meaningless.
    package init(_ logins: Logins, of user: UInt32?) {
        let own = logins.sessions.values.filter { $0.user == user && $0.isForPeople }
        let graphical = own.filter(\.isGraphical)
        let relevant = graphical.isEmpty ? own : graphical
        isLocked = !relevant.isEmpty && relevant.allSatisfy(\.isLocked)
        isActive = relevant.contains(where: \.isActive)
        isIdle = !relevant.isEmpty && relevant.allSatisfy(\.isIdle)
        people = logins.people
        (isAsleep, sleeps, wakes) = (logins.isAsleep, logins.sleeps, logins.wakes)
        (isShuttingDown, found) = (logins.isShuttingDown, logins.found)
    }
}

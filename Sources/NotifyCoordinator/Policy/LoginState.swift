// SPDX-License-Identifier: Apache-2.0

/// The state of the login sessions as it concerns one user, in numbers from which events are derived.
package struct LoginState: Equatable, Sendable {
    /// Of the user's graphical sessions or, if there are none, of all the user's sessions.
    package var isLocked = false
    package var isActive = false
    package var isIdle = false
    /// The sessions of all users that people work in.
    package var people: Set<String> = []
    package var isAsleep = false
    package var isShuttingDown = false

    package init() {}

    /// - Parameter user: the owner of the sessions; nil if those of one user are meaningless.
    package init(_ logins: Logins, of user: UInt32?) {
        let own = logins.sessions.values.filter { $0.user == user && $0.isForPeople }
        let graphical = own.filter(\.isGraphical)
        let relevant = graphical.isEmpty ? own : graphical
        isLocked = !relevant.isEmpty && relevant.allSatisfy(\.isLocked)
        isActive = relevant.contains(where: \.isActive)
        isIdle = !relevant.isEmpty && relevant.allSatisfy(\.isIdle)
        people = logins.people
        isAsleep = logins.isAsleep
        isShuttingDown = logins.isShuttingDown
    }
}

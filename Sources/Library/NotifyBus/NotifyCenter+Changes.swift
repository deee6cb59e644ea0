// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Whether the center is connected to its bus: first the present state, then its changes from now on.
    ///
    /// This does not connect. In a center that has not tried to yet the sequence begins with the outcome of the first
    /// attempt.
    ///
    /// They come in order with the callbacks of the center. A task that does not keep up sees only the latest two. The
    /// sequence ends when the task is cancelled or the center is closed. It is for one consumer; call this again for
    /// another.
    public func connectionChanges() -> some AsyncSequence<ConnectionChange, Never> & Sendable {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ConnectionChange.self,
            bufferingPolicy: .bufferingNewest(2)
        )
        let (changes, number) = follow(
            Follower(change: { continuation.yield($0) }, end: { continuation.finish() })
        )
        continuation.onTermination = { [weak changes] _ in changes?.remove(number) }
        return stream
    }
}

extension NotifyCenter.Lifecycle {
    /// The current state, and its changes from now on. A task that does not keep up sees only the latest one.
    ///
    /// The sequence ends when the task is cancelled or the center is closed. It is for one consumer; call this again for
    /// another. Connects to the bus if nothing else has.
    ///
    /// - Throws: ``NotifyBusError`` with the code `closed` after `NotifyCenter.close()`, or `failed` if the system is
    ///   out of threads or descriptors.
    public func changes() throws(NotifyBusError) -> some AsyncSequence<State, Never> & Sendable {
        let (stream, continuation) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
        let (states, number) = try follow(
            Follower(change: { continuation.yield(State($0)) }, end: { continuation.finish() }),
            beginningWithPresent: true
        )
        continuation.onTermination = { [weak states] _ in states?.remove(number) }
        return stream
    }

    /// Reports to the agent which state this program is in, and suspends the task until that is in effect for all its
    /// observers.
    ///
    /// What the user has set with `notify-lifecycle` takes precedence: then the agent notes the report for later,
    /// and ``state`` does not change until the user releases it.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noAgent` if there is no lifecycle agent, `noBus` or `disconnected` if
    ///   the bus cannot be reached, `cancelled`, or `failed` with what the agent said.
    public func report(_ state: State) async throws(NotifyBusError) {
        let outcome = Completion<Void>()
        try report(state) { outcome.complete($0) }
        try await outcome.value()
    }

    /// Sets whether this program follows the desktop: its observers then hear posts only while it has the focus, and its
    /// login session is active and not locked. Suspends the task until the agent has noted it.
    ///
    /// Set it in a program whose observers only serve what it shows. Anything that the agent can't determine has no
    /// effect: if it does not know the focus, or there is no logind, the program stays in the foreground. What the
    /// user sets with `notify-lifecycle`, and what the program reports, overrides the desktop. The user's
    /// configuration can make the agent ignore the focus or the session; see `notify-agent(8)`.
    ///
    /// If there is no agent, this returns, and an agent that comes later learns of it; so it does if this throws.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be reached, `cancelled`, or
    ///   `closed`, after which nothing is set.
    public func setFollowsDesktop(_ follows: Bool) async throws(NotifyBusError) {
        let noted = Completion<Void>()
        try setFollowsDesktop(follows) { noted.complete($0) }
        do throws(NotifyBusError) {
            try await noted.value()
        } catch {
            if error.code != .noAgent { throw error }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension NotifyCenter {
    /// The state of this program, as the lifecycle agent sees it.
    public var lifecycle: Lifecycle { Lifecycle(core: core.lifecycle) }

    /// The state of this program, as the lifecycle agent sees it.
    ///
    /// The agent decides on it by what the user, the desktop or the program itself says. Without an agent every program
    /// is in the foreground. Posting works in every state.
    public struct Lifecycle: Sendable {
        /// What a program's observers receive. More states may be added.
        public struct State: Hashable, Sendable, CustomStringConvertible {
            package let value: LifecycleState

            package init(_ value: LifecycleState) { self.value = value }

            /// Every post.
            public static var foreground: State { State(.foreground) }
            /// Nothing, then or later.
            public static var background: State { State(.background) }
            /// Nothing for now; when the program is resumed, one delivery for each registration whose name was posted
            /// meanwhile.
            public static var suspended: State { State(.suspended) }

            /// The name of the state, as in the commands.
            public var description: String { value.rawValue }
        }

        package let core: CoreCenter.Lifecycle

        /// The current state.
        ///
        /// It is known once there is an observer or the program follows its changes; before that it is `foreground`.
        public var state: State { State(core.state) }

        /// Whether this program follows the desktop; see `setFollowsDesktop(_:)`. The default is false.
        public var followsDesktop: Bool { core.followsDesktop }
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
        let (states, number) = try rethrowing { () throws(CoreError) in
            try core.follow(
                Follower(change: { continuation.yield(State($0)) }, end: { continuation.finish() }),
                beginningWithPresent: true
            )
        }
        continuation.onTermination = { [weak states] _ in states?.remove(number) }
        return stream
    }

    /// Reports to the agent which state this program is in, and suspends the task until that is in effect for all its
    /// observers.
    ///
    /// A state that the user has set with `notify-lifecycle` takes precedence: then the agent notes the report for
    /// later, and ``state`` does not change until the user releases it.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noAgent` if there is no lifecycle agent, `noBus` or `disconnected` if
    ///   the bus cannot be reached, `cancelled`, or `failed` with what the agent said.
    public func report(_ state: State) async throws(NotifyBusError) {
        let outcome = Completion<Void>()
        try rethrowing { () throws(CoreError) in try core.report(state.value) { outcome.complete($0) } }
        try await outcome.value()
    }

    /// Sets whether this program follows the desktop: its observers then hear posts only while it has the focus, and its
    /// login session is active and not locked. Suspends the task until the agent has noted it.
    ///
    /// Set it in a program whose observers only serve what it shows. Anything that the agent can't determine has no
    /// effect: if it does not know the focus, or there is no logind, the program stays in the foreground. A state that
    /// the user sets with `notify-lifecycle`, or that the program reports, overrides the desktop. The user's
    /// configuration can make the agent ignore the focus or the session; see `notify-agent(8)`.
    ///
    /// If there is no agent, this returns, and an agent that comes later learns of it; so it does if this throws.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be reached, `cancelled`, or
    ///   `closed`, after which nothing is set.
    public func setFollowsDesktop(_ follows: Bool) async throws(NotifyBusError) {
        let noted = Completion<Void>()
        try rethrowing { () throws(CoreError) in try core.setFollowsDesktop(follows) { noted.complete($0) } }
        do throws(NotifyBusError) {
            try await noted.value()
        } catch {
            if error.code != .noAgent { throw error }
        }
    }

    /// Reports to the agent which state this program is in, and waits until that is in effect for all its
    /// observers. Blocks the thread.
    ///
    /// A state that the user has set with `notify-lifecycle` takes precedence: then the agent notes the report for
    /// later, and ``state`` does not change until the user releases it.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noAgent` if there is no lifecycle agent, `noBus` or
    ///   `disconnected` if the bus cannot be reached, `timedOut`, or `failed` with what the agent said.
    @available(*, noasync, message: "It blocks the thread; use 'await report(_:)'.")
    public func report(_ state: State, timeout: Duration) throws(NotifyBusError) {
        try rethrowing { () throws(CoreError) in try core.report(state.value, timeout: timeout) }
    }
}

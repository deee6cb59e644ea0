// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// The state of this program, as the lifecycle agent sees it.
    public var lifecycle: Lifecycle { Lifecycle(center: self) }

    /// The state of this program, as the lifecycle agent sees it.
    ///
    /// The agent decides on it by what the user, the desktop or the program itself says. Without an agent every program
    /// is in the foreground. Posting works in every state.
    public struct Lifecycle: Sendable {
        fileprivate let center: NotifyCenter

        /// The current state.
        ///
        /// It is known once there is an observer or somebody follows its changes; before that it is `foreground`.
        public var state: LifecycleState { center.peer?.states.current ?? .foreground }

        /// Whether this program follows the desktop: its observers hear posts only while it has the focus, and its
        /// login session is active and not locked. The default is false.
        ///
        /// Set it in a program whose observers only serve what it shows. Anything that the agent can't determine has no
        /// effect: if it does not know the focus, or there is no logind, the program stays in the foreground. What the
        /// user sets with `notify-lifecycle`, and what the program reports, overrides the desktop. The user's
        /// configuration can make the agent ignore the focus or the session; see `notify-agent(8)`.
        public var followsDesktop: Bool {
            get { center.peer?.states.followsDesktop ?? false }
            nonmutating set {
                guard let peer = center.peer, peer.states.followsDesktop != newValue else { return }
                peer.states.followsDesktop = newValue
                center.perform { _ in peer.followDesktop(newValue) }
            }
        }

        /// Reports changes from now on to a callback. Connects to the bus if nothing else has.
        ///
        /// - Parameter beginningWithPresent: whether to report the current state first.
        /// - Returns: the object that reports, and the number by which to end it.
        package func follow(
            _ follower: LifecycleStates.Follower,
            beginningWithPresent: Bool = false
        ) throws(NotifyBusError) -> (states: LifecycleStates, number: Int) {
            guard let peer = center.peer else { throw .closed }
            let number = peer.states.add(follower, beginningWithPresent: beginningWithPresent)
            try center.open()
            return (peer.states, number)
        }

        /// Reports to the agent which state this program is in, and waits until that is in effect for all its
        /// observers. Blocks the thread; asynchronous code uses a form that does not.
        ///
        /// What the user has set with `notify-lifecycle` takes precedence: then the agent notes the report for later,
        /// and ``state`` does not change until the user releases it.
        ///
        /// - Throws: ``NotifyBusError`` with the code `noAgent` if there is no lifecycle agent, `noBus` or
        ///   `disconnected` if the bus cannot be reached, `timedOut`, or `failed` with what the agent said.
        public func report(
            _ state: LifecycleState,
            timeout: Duration = .seconds(10)
        ) throws(NotifyBusError) {
            guard let peer = center.peer else { throw .closed }
            let outcome = Barrier()
            try center.open()
            center.engine.prepareToWait()
            center.perform { _ in peer.report(state) { outcome.complete($0) } }
            try outcome.wait(until: .after(timeout))
        }
    }
}

extension NotifyCenter {
    /// The unique name of the observing connection, once the bus has accepted it.
    package func observingName(timeout: Duration = .seconds(10)) throws(NotifyBusError) -> String {
        try barrier(timeout: timeout)
        let answer = Monitor<String?>(nil)
        perform { link in
            let name = link.uniqueName
            answer.withLock { $0 = name }
            answer.wakeAll()
        }
        guard let name: String = answer.wait(until: .after(timeout), { $0 }) else { throw .timedOut("answer") }
        return name
    }
}

// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// The state of this program, as the lifecycle agent sees it.
    package var lifecycle: Lifecycle { Lifecycle(center: self) }

    /// The state of this program, as the lifecycle agent sees it.
    package struct Lifecycle: Sendable {
        fileprivate let center: NotifyCenter

        /// The current state, once there is an observer or the program follows its changes; before that it is
        /// `foreground`.
        package var state: LifecycleState { center.peer?.states.current ?? .foreground }

        /// Whether this program follows the desktop; see `setFollowsDesktop(_:)`. The default is false.
        package var followsDesktop: Bool { center.peer?.states.followsDesktop ?? false }

        /// Sets whether the program follows the desktop, and reports it to the agent without waiting.
        ///
        /// - Parameter completion: called once the agent has noted it, or with the error that keeps it from that. A later
        ///   agent learns of it in any case.
        package func setFollowsDesktop(
            _ follows: Bool,
            then completion: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
        ) throws(NotifyBusError) {
            guard let peer = center.peer, !center.engine.isStopped else { throw .closed }
            peer.states.followsDesktop = follows
            if center.engine.process != nil { return completion(.success(())) }
            try center.open()
            let isAccepted = center.perform { _ in
                peer.followDesktop(follows)
                // It answers this after it has noted that.
                peer.ask(AgentInterface.GetNameState("org.notifybus.follows")) { answer in
                    if case .failure(.unreachable(let error)) = answer { return completion(.failure(error)) }
                    completion(.success(()))
                }
            }
            if !isAccepted { throw .closed }
        }

        /// Reports changes from now on to a callback. Connects to the bus if nothing else has.
        ///
        /// - Parameter beginningWithPresent: whether to report the current state first.
        /// - Returns: the object that reports, and the number by which to end it.
        package func follow(
            _ follower: Follower<LifecycleState>,
            beginningWithPresent: Bool = false
        ) throws(NotifyBusError) -> (states: LifecycleStates, number: Int) {
            guard let peer = center.peer else { throw .closed }
            let number = peer.states.add(follower, beginningWithPresent: beginningWithPresent)
            do throws(NotifyBusError) {
                try center.open()
            } catch {
                peer.states.remove(number)
                throw error
            }
            return (peer.states, number)
        }

        /// Reports to the agent which state this program is in, and waits until that is in effect for all its observers.
        package func report(_ state: LifecycleState, timeout: Duration) throws(NotifyBusError) {
            let outcome = Barrier()
            center.engine.prepareToWait()
            try report(state) { outcome.complete($0) }
            try outcome.wait(until: .after(timeout))
        }

        /// The same without waiting.
        package func report(
            _ state: LifecycleState,
            then completion: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
        ) throws(NotifyBusError) {
            guard let peer = center.peer, !center.engine.isStopped else { throw .closed }
            if center.engine.process != nil { throw .noAgent }
            try center.open()
            guard center.perform({ _ in peer.report(state, then: completion) }) else { throw .closed }
        }
    }
}

extension NotifyCenter {
    /// The unique name of the observing connection, once the bus has accepted it.
    package func observingName() throws(NotifyBusError) -> String {
        let timeout = Duration.seconds(10)
        try barrier(timeout: timeout)
        let answer = Monitor<String?>(nil)
        let isAccepted = perform { link in
            let name = link.uniqueName
            answer.withLock { $0 = name }
            answer.wakeAll()
        }
        if !isAccepted { throw .closed }
        guard let name: String = answer.wait(until: .after(timeout), { $0 }) else { throw .timedOut("answer") }
        return name
    }
}

extension NotifyCenter {
    /// Whether the lifecycle agent has answered.
    package var agentContact: AgentContact { peer?.contact.withLock { $0 } ?? .unknown }

    /// The agent's report about itself.
    package func agentStatus() throws(AgentError) -> AgentInterface.Status.Answer {
        try askAgent(.seconds(2)) { peer, completion in peer.ask(AgentInterface.Status(), then: completion) }
    }
}

// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Sets the state of a name: a number that the agent keeps as long as some connection observes the name.
    ///
    /// The corresponding C function is `notify_set_state`.
    ///
    /// - Parameter timeout: how long to wait for the agent.
    package func setState(
        _ value: UInt64,
        of name: NotifyName,
        timeout: Duration = .seconds(2)
    ) throws(AgentError) {
        try askAgent(timeout) { peer, completion in peer.setState(value, of: name, then: completion) }
    }

    /// Sets the state of a name if it is `old`.
    ///
    /// - Returns: what it was: `old` if it is `new` now.
    package func swapState(
        _ old: UInt64,
        for new: UInt64,
        of name: NotifyName,
        timeout: Duration = .seconds(2)
    ) throws(AgentError) -> UInt64 {
        try askAgent(timeout) { peer, completion in peer.swapState(old, for: new, of: name, then: completion) }
    }

    /// Has sleep or shutdown wait for this program after a post of the name, until ``letGo(_:_:)``.
    ///
    /// - Returns: which time it was posted last.
    package func hold(_ name: NotifyName, timeout: Duration = .seconds(2)) throws(AgentError) -> UInt64 {
        try askAgent(timeout) { peer, completion in peer.hold(name, then: completion) }
    }

    /// This program is done with what it does for that time.
    package func letGo(_ name: NotifyName, _ number: UInt64) {
        guard let peer else { return }
        _ = perform { _ in peer.letGo(name, number) }
    }

    /// The state of a name; 0 if no program has set it.
    ///
    /// The corresponding C function is `notify_get_state`.
    package func state(of name: NotifyName, timeout: Duration = .seconds(2)) throws(AgentError) -> UInt64 {
        let question = AgentInterface.GetNameState(name.string)
        return try askAgent(timeout) { peer, completion in peer.ask(question, then: completion) }.value
    }

    /// Stops reporting the state of a name to a new agent.
    package func forgetState(of name: NotifyName) {
        peer?.nameStates.forget(name)
    }

    /// Asks the agent to change the state of a process, and waits until that is in effect.
    ///
    /// The corresponding C functions are `notify_suspend_pid` and `notify_resume_pid`.
    package func setLifecycleState(
        _ state: LifecycleState,
        ofProcess process: Int32
    ) throws(AgentError) {
        let request = AgentInterface.SetState(target: "pid:\(process)", state: state, freezes: false)
        _ = try askAgent(.seconds(10)) { peer, completion in peer.ask(request, then: completion) }
    }

    /// Asks the agent something and waits for the reply. Opens the observing connection if necessary.
    func askAgent<Answer: Sendable>(
        _ timeout: Duration,
        _ ask:
            @escaping @Sendable (
                LifecyclePeer, @escaping @Sendable (Result<Answer, AgentError>) -> Void
            ) -> Void
    ) throws(AgentError) -> Answer {
        guard let peer else { throw .unreachable(.closed) }
        if engine.process != nil { throw .unreachable(.noAgent) }
        let outcome = Monitor<Result<Answer, AgentError>?>(nil)
        do throws(NotifyBusError) {
            try open()
        } catch {
            throw .unreachable(error)
        }
        engine.prepareToWait()
        let isAccepted = perform { _ in
            ask(peer) { answer in
                outcome.withLock { $0 = answer }
                outcome.wakeAll()
            }
        }
        if !isAccepted { throw .unreachable(.closed) }
        let answer: Result<Answer, AgentError>? = outcome.wait(until: .after(timeout)) { $0 }
        guard let answer else { throw .unreachable(.timedOut("deliver the lifecycle agent's answer")) }
        return try answer.get()
    }
}

// SPDX-License-Identifier: Apache-2.0

/// Why the agent did not do what it was asked to do.
package enum AgentError: Error, Sendable {
    /// It was not reached.
    case unreachable(NotifyBusError)
    /// It refused.
    case refused(BusFault)
}

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
        let answer = try askAgent(AgentInterface.SetNameState(name: name.string, value: value), timeout: timeout)
        peer?.nameStates.note(NameStates.Entry(value: value, stamp: answer.stamp), of: name)
    }

    /// The state of a name; 0 if nobody has set it.
    ///
    /// The corresponding C function is `notify_get_state`.
    package func state(of name: NotifyName, timeout: Duration = .seconds(2)) throws(AgentError) -> UInt64 {
        try askAgent(AgentInterface.GetNameState(name: name.string), timeout: timeout).value
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
        ofProcess process: Int32,
        timeout: Duration = .seconds(10)
    ) throws(AgentError) {
        _ = try askAgent(
            AgentInterface.SetState(target: "pid:\(process)", state: state, freezes: false),
            timeout: timeout
        )
    }

    /// Calls a method of the agent and waits for the reply. Opens the observing connection if necessary.
    private func askAgent<Call: ProtocolCall>(
        _ call: Call,
        timeout: Duration
    ) throws(AgentError) -> Call.Answer {
        guard let peer else { throw .unreachable(.closed) }
        let outcome = Monitor<Result<Call.Answer, AgentError>?>(nil)
        do throws(NotifyBusError) {
            try open()
        } catch {
            throw .unreachable(error)
        }
        engine.prepareToWait()
        perform { link in
            peer.ask(call, link) { answer in
                outcome.withLock { $0 = answer }
                outcome.wakeAll()
            }
        }
        let answer: Result<Call.Answer, AgentError>? = outcome.wait(until: .after(timeout)) { $0 }
        guard let answer else { throw .unreachable(.timedOut("deliver the lifecycle agent's answer")) }
        return try answer.get()
    }
}

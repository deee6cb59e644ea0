// SPDX-License-Identifier: Apache-2.0

/// Why the agent did not do what it was asked for.
package enum AgentError: Error, Sendable {
    /// It was not reached.
    case unreachable(NotifyBusError)
    /// It said no.
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
        let answer = try askAgent("SetNameState", [.string(name.string), .uint64(value)], timeout: timeout)
        guard let stamp = answer.first?.uint64 else { return }
        peer?.nameStates.note(NameStates.Entry(value: value, stamp: stamp), of: name)
    }

    /// The state of a name; 0 if nobody has set it.
    ///
    /// The corresponding C function is `notify_get_state`.
    package func state(of name: NotifyName, timeout: Duration = .seconds(2)) throws(AgentError) -> UInt64 {
        try askAgent("GetNameState", [.string(name.string)], timeout: timeout).first?.uint64 ?? 0
    }

    /// No longer tells a new agent what the state of a name was.
    package func forgetState(of name: NotifyName) {
        peer?.nameStates.forget(name)
    }

    /// Has the agent change the state of a process, and waits until that is in force.
    ///
    /// The corresponding C functions are `notify_suspend_pid` and `notify_resume_pid`.
    package func setLifecycleState(
        _ state: LifecycleState,
        ofProcess process: Int32,
        timeout: Duration = .seconds(10)
    ) throws(AgentError) {
        let arguments: [BusValue] = [.string("pid:\(process)"), .string(state.rawValue), .boolean(false)]
        _ = try askAgent("SetState", arguments, timeout: timeout)
    }

    /// Calls a method of the agent, and waits for the answer. Opens the observing connection, if need be.
    private func askAgent(
        _ member: String,
        _ arguments: [BusValue],
        timeout: Duration
    ) throws(AgentError) -> [BusValue] {
        guard let peer else { throw .unreachable(.closed) }
        let outcome = Monitor<Result<[BusValue], AgentError>?>(nil)
        do throws(NotifyBusError) {
            try open()
        } catch {
            throw .unreachable(error)
        }
        engine.prepareToWait()
        perform { link in
            peer.ask(member, arguments, link) { answer in
                outcome.withLock { $0 = answer }
                outcome.wakeAll()
            }
        }
        let answer: Result<[BusValue], AgentError>? = outcome.wait(until: .after(timeout)) { $0 }
        guard let answer else { throw .unreachable(.timedOut("bring the lifecycle agent's answer")) }
        return try answer.get()
    }
}

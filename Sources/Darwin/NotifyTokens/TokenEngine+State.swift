// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension TokenEngine {
    /// Sets the state of a token's name. Waits for the agent, 2 seconds at most.
    package func setState(_ value: UInt64, of token: Int32) throws(NotifyStatus) {
        let record = try find(token).name
        let center = try withState { state throws(NotifyStatus) in
            guard record.needsBus else {
                record.ownState = value
                return NotifyCenter?.none
            }
            try TokenEngine.requireBus(state)
            // From now on the name is not kept idle when its last token goes, as its state would be kept too.
            record.hasState = true
            return state.center
        }
        guard let center else { return }
        do throws(AgentError) {
            try center.setState(value, of: record.name)
        } catch {
            throw NotifyStatus(error)
        }
        // The last token may have been cancelled in the meantime.
        if !isValid(token) { forgetState(of: record) }
    }

    /// The state of a token's name. Waits for the agent, 2 seconds at most.
    package func state(of token: Int32) throws(NotifyStatus) -> UInt64 {
        let record = try find(token).name
        let (own, center) = try withState { state throws(NotifyStatus) in
            guard record.needsBus else { return (record.ownState, NotifyCenter?.none) }
            try TokenEngine.requireBus(state)
            return (0, state.center)
        }
        guard let center else { return own }
        do throws(AgentError) {
            return try center.state(of: record.name)
        } catch {
            throw NotifyStatus(error)
        }
    }

    /// Stops reporting the state of a name to a new agent, unless it is registered again.
    func forgetState(of record: SharedObservation) {
        state.withLock { state in
            if let current = state.records[record.name], current.hasState { return }
            state.center.forgetState(of: record.name)
        }
    }

    /// Asks the agent to suspend a process: after `resume` its registrations are notified once of what was posted in
    /// the meantime.
    package func suspend(process: Int32) throws(NotifyStatus) {
        try setLifecycleState(.suspended, of: process)
    }

    package func resume(process: Int32) throws(NotifyStatus) {
        try setLifecycleState(.foreground, of: process)
    }

    private func setLifecycleState(
        _ lifecycleState: LifecycleState,
        of process: Int32
    ) throws(NotifyStatus) {
        guard process > 0 else { throw .invalidRequest }
        let center = try withState { state throws(NotifyStatus) in
            try TokenEngine.requireBus(state)
            return state.center
        }
        do throws(AgentError) {
            try center.setLifecycleState(lifecycleState, ofProcess: process)
        } catch {
            throw NotifyStatus(error)
        }
    }
}

extension NotifyStatus {
    fileprivate init(_ error: AgentError) {
        switch error {
        case .unreachable(let error):
            self = NotifyStatus(error)
        case .refused(let fault):
            self =
                switch fault.name {
                case "org.freedesktop.DBus.Error.AccessDenied": .notAuthorized
                case "org.notifybus.Error.NoSuchTarget": .invalidRequest
                // An agent too old to have the method.
                case "org.freedesktop.DBus.Error.UnknownMethod": .serverNotFound
                default: .failed
                }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyNames

extension Coordinator {
    mutating func setNameState(_ call: CallID, _ caller: Caller, _ name: NotifyName, _ value: UInt64) throws(Refusal) {
        guard !configuration.events.contains(name) else {
            throw Refusal(.accessDenied, "Only the agent can set the state of '\(name)'.")
        }
        guard maySetState(of: name, caller.user) else {
            throw Refusal(.accessDenied, "Only its owner and root can set the state of '\(name)'.")
        }
        guard observedNames.containsExactly(name) || nameStates.isPinned(name) else {
            throw Refusal(.notObserved, "No connection observes '\(name)', so it has no state.")
        }
        answer(call, .stamp(nameStates.set(value, of: name, now: stamp)))
    }

    /// The same permission as to post the name.
    private func maySetState(of name: NotifyName, _ user: UInt32) -> Bool {
        user == 0 || name.isOpen(to: user) && !(configuration.reservesNames && name.isReserved)
    }

    /// Takes over the states that a connection had set under an earlier agent.
    mutating func restoreStates(_ statement: Newcomer.Statement, of user: UInt32) {
        for (name, entry) in statement.states
        where statement.subjects.names.contains(name) && maySetState(of: name, user)
            && !configuration.events.contains(name)
        {
            nameStates.restore(entry, of: name, now: stamp)
        }
    }

    private var stamp: UInt64 { UInt64(max(0, now.nanoseconds)) }
}

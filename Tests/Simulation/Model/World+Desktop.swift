// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

// The desktop, and states of names.
extension World {
    func desktopChanges() {
        for observer in observers where observer.followsDesktop { oracle.desktopChanges(observer.number) }
        if mutation != .ignoresLock { agent?.learn(isLocked: isLocked) }
    }

    /// The agent says that what it was told of the lock is in force.
    func lockIsInForce(_ number: UInt64, _ agent: SimulatedAgent) {
        guard isLocked, number == agent.lastWait else { return }
        for observer in observers where observer.followsDesktop && !observer.hasEnded {
            guard let connection = observer.connection, bus[connection].isOpen,
                let id = agent.coordinator.id(of: bus[connection].name), agent.followers.contains(id),
                case .source? = agent.coordinator.entry(of: id)?.decider
            else { continue }
            oracle.desktopIsFollowed(observer.number)
        }
    }

    func nameStateIsAsked(_ name: Int) { unansweredSettings[name] += 1 }
    func nameStateIsAnswered(_ name: Int) { unansweredSettings[name] -= 1 }

    /// The agent has taken the state of a name.
    func nameStateIsSet(_ name: Int, _ value: UInt64, _ stamp: UInt64, by observer: Int) {
        if let known = nameStates[name], known.stamp > stamp { return }
        nameStates[name] = (value, stamp, observer)
    }

    func checkNameStates(_ agent: SimulatedAgent, _ living: [SimulatedObserver]) {
        // What was asked for on a connection that is lost may have been done later.
        for name in 0..<Subject.nameCount where unansweredSettings[name] != 0 { nameStates[name] = nil }
        unansweredSettings = .zero
        for (name, state) in nameStates where living.contains(where: { $0.number == state.setter }) {
            let told = agent.state(of: name)
            if told != state.value {
                oracle.fail(
                    "the state of \(Subject.texts[name]) was set to \(state.value), and is \(told.map(String.init) ?? "?")"
                )
            }
        }
    }
}

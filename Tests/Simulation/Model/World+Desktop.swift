// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

// The desktop, and the states of names.
extension World {
    /// - Parameter isNew: whether the agent has just started, and asks its sources for the first time.
    func desktopChanges(from old: Desktop, isNew: Bool = false) {
        if !setting.hasDesktop { return }
        for observer in observers where isNew || says(old, of: observer) != says(desktop, of: observer) {
            if isMeant(observer) { oracle.desktopChanges(observer.number) }
        }
        agent?.learn(desktop, isNew ? nil : old, self)
    }

    func says(_ desktop: Desktop, of observer: SimulatedObserver) -> LifecycleState? {
        desktop.state(observer.process, asks: observer.followsDesktop, setting)
    }

    func isExempt(_ observer: SimulatedObserver) -> Bool { setting.isExempt(observer.process) }

    /// Whether anything about the desktop affects an observer.
    func isMeant(_ observer: SimulatedObserver) -> Bool {
        !isExempt(observer)
            && [setting.sleepFollowers, setting.sessionFollowers, setting.focusFollowers].contains {
                $0 == .everyone || $0 == .asking && observer.followsDesktop
            }
    }

    /// The agent says that the changes of the desktop so far are in force.
    func desktopIsInForce(_ number: UInt64, _ agent: SimulatedAgent) {
        guard number == agent.lastWait else { return }
        for observer in observers where isMeant(observer) && !observer.hasEnded {
            // One that comes into the foreground may have just been registered, and have yet to open its gate.
            guard says(desktop, of: observer) == .background, let connection = observer.connection,
                bus[connection].isOpen, let id = agent.id(of: bus[connection].name),
                agent.followers.contains(id), let entry = agent.entry(of: id), entry.decider.isDesktop,
                // That it follows may be on its way.
                entry.state == .background
            else { continue }
            oracle.desktopIsFollowed(observer.number, .background)
        }
    }

    func nameStateIsAsked(_ name: Int) {
        unansweredSettings[name] += 1
        heldStates[name] = nil
    }

    func nameStateIsAnswered(_ name: Int) { unansweredSettings[name] -= 1 }

    /// The agent has accepted the state of a name.
    ///
    /// - Parameter observer: the one that tells the next agent; nil if it does not observe the name any more.
    func nameStateIsSet(_ name: Int, _ value: UInt64, _ stamp: UInt64, by observer: Int?) {
        if let known = nameStates[name], known.stamp > stamp { return }
        nameStates[name] = NameState(value: value, stamp: stamp, setter: observer)
    }

    /// A program no longer observes a name, or any.
    func observesNoMore(_ observer: Int, _ subject: Int? = nil) {
        for name in heldStates.keys where subject == nil || subject == name {
            heldStates[name]?.observers.remove(observer)
        }
    }

    /// An agent that hands over knows the states of names that were observed all along, whichever program set them.
    func checkHeldStates(_ agent: SimulatedAgent) {
        for (name, state) in heldStates where !state.observers.isEmpty && agent.state(of: name) != state.value {
            oracle.fail("the state of \(Subject.texts[name]) was \(state.value), and the agent has forgotten it")
        }
        heldStates = [:]
        for name in 0..<Subject.nameCount {
            guard let value = agent.state(of: name), value != 0 else { continue }
            let all = observers.filter { !$0.hasEnded && $0.observes(name) }.map(\.number)
            if !all.isEmpty { heldStates[name] = HeldState(value: value, observers: Set(all)) }
        }
    }

    /// The observers of a name know its state: the agent may die now.
    func checkWitnesses(_ agent: SimulatedAgent, _ living: [SimulatedObserver]) {
        for name in 0..<Subject.nameCount where living.contains(where: { $0.observes(name) }) {
            guard let told = agent.state(of: name), told != 0 else { continue }
            if !observers.contains(where: { !$0.hasEnded && $0.nameStates[name]?.value == told }) {
                oracle.fail("nobody remembers that the state of \(Subject.texts[name]) is \(told)")
            }
        }
    }

    func checkNameStates(_ agent: SimulatedAgent, _ living: [SimulatedObserver]) {
        checkHeldStates(agent)
        checkWitnesses(agent, living)
        // A request on a connection that was lost may still have been carried out later.
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

extension Decider {
    /// Whether only the desktop has decided.
    var isDesktop: Bool {
        switch self {
        case .source, .rule: true
        case .person, .program, .exemption: false
        }
    }
}

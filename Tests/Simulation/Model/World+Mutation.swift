// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

extension World {
    /// Handles an effect wrongly, if that is the break to be found.
    ///
    /// - Returns: whether the effect must not be performed any more.
    func breaks(_ effect: ObserverLifecycle.Effect, of observer: SimulatedObserver) -> Bool {
        switch (mutation, effect) {
        case (.keepsRules, .withdrawRules), (.forgetsNames, .tell), (.forgetsAnswer, .answer): return true
        case (.keepsNoDeadline, .setDeadline(let time)): return time != nil
        case (.gateOpensBeforeRules, .askBarrier(let number)) where observer.gate == .opening:
            observer.passBarrier(number, self)
            return true
        default: return false
        }
    }

    func breaks(_ effect: Effect, of agent: SimulatedAgent) -> Bool {
        switch (mutation, effect) {
        case (.deliversNothing, .deliver), (.forgetsThaw, .thaw), (.keepsNappers, .thawProgram): return true
        case (.deliversTwice, .deliver(let observer, let names)):
            agent.deliver(names, to: observer.id, self)
            return false
        default: return false
        }
    }
}

extension SimulatedAgent {
    /// For a break of the protocol: rules that a connection leaves to its successor are given up, and requested again.
    func renewRules(_ subjects: [Int], _ world: World) {
        let inherited = subjects.filter(hears)
        for subject in inherited { world.bus.write(.removeMatch(subject), connection) }
        for subject in inherited { world.bus.write(.addMatch(subject, serial: 0), connection) }
    }

    /// For a break of the protocol: of the requests for a target, those are forgotten that wait for another one's change.
    func forgetSuperseded(by change: Change) {
        let open = calls.filter { $0.value.change?.target == change.target && $0.value.change != nil }
            .sorted { $0.key.number < $1.key.number }
        for (call, sender) in open where sender.change != open.first?.value.change { calls[call] = nil }
    }
}

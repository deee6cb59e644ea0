// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

extension World {
    /// Does something else about an effect if that is the break that is looked for.
    ///
    /// - Returns: whether the effect is not to be performed.
    func breaks(_ effect: ObserverLifecycle.Effect, of observer: SimulatedObserver) -> Bool {
        switch (mutation, effect) {
        case (.keepsRules, .withdrawRules), (.forgetsNames, .tell), (.forgetsAnswer, .answer): return true
        case (.keepsNoDeadline, .setDeadline(let time)): return time != nil
        case (.gateOpensBeforeRules, .askBarrier(let number)) where observer.lifecycle.gate == .opening:
            observer.passBarrier(number, self)
            return true
        default: return false
        }
    }

    func breaks(_ effect: Effect, of agent: SimulatedAgent) -> Bool {
        switch (mutation, effect) {
        case (.deliversNothing, .deliver), (.forgetsThaw, .thaw): return true
        case (.deliversTwice, .deliver(let id, let names)):
            agent.deliver(names, to: id, self)
            return false
        default: return false
        }
    }
}

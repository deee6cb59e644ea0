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
        case (.deliversTwice, .deliver(let id, let names)):
            agent.deliver(names, to: id, self)
            return false
        default: return false
        }
    }
}

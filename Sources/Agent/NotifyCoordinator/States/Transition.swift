// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// How one connection gets from state to state: decides what to do next, without doing it.
///
/// Only one change is in progress at a time. Of the requests that come meanwhile, the last one wins; the callers of the
/// others are answered when the change that superseded theirs has taken effect.
struct Transition<Waiter> {
    enum Step: Hashable {
        case settled
        /// The connection is registering and has yet to be answered: it can't be informed of anything before.
        case entering
        /// The names are being put under the agent's own rules.
        case takingOver
        /// The observer was asked to close its gate.
        case closing(LifecycleState)
        /// The observer was asked to open its gate.
        case opening
        /// The gate is open; waiting for posts whose sender is still being determined.
        case handingBack
    }

    enum Effect {
        /// Match the names; ends in `namesAreSubscribed`.
        case subscribe
        case unsubscribe
        /// Find the point in the stream of posts from which they set bits; ends in `markIsReached`.
        case mark
        /// Inform the observer of its state; ends in `observerAnswered`.
        case tell(LifecycleState)
        /// Wait for posts that are held back; ends in `nothingIsHeldBack`.
        case awaitHeldBack
        /// Deliver what is pending.
        case deliver
        case forgetPending
        case announce(from: LifecycleState, to: LifecycleState)
        case answer([Waiter], Outcome)
    }

    /// A change that was requested while another is in progress.
    fileprivate struct Next {
        let aim: LifecycleState
        let waiters: [Waiter]
    }

    enum Outcome: Equatable {
        case inForce
        case failed(String)
    }

    /// The state in effect.
    private(set) var state: LifecycleState
    private(set) var step = Step.settled
    /// Whether posts set bits.
    private(set) var isCollecting: Bool
    /// Whether the names are under the agent's rules, or about to be.
    private(set) var isProxied: Bool
    /// The target of a change in progress, or else the state.
    private(set) var aim: LifecycleState
    /// Whether the observer has had names subscribed before it closes its gate.
    private var hasWaited = false
    private var waiters: [Waiter] = []
    private var next: Next?

    /// - Parameters:
    ///   - isProxied: whether the names are under the agent's rules.
    ///   - isCollecting: whether posts already set bits; the same as `isProxied` if nil.
    ///   - isEntering: whether the connection has yet to be answered; ends in `entered`.
    init(_ state: LifecycleState, isProxied: Bool = false, isCollecting: Bool? = nil, isEntering: Bool = false) {
        self.state = state
        aim = state
        self.isProxied = isProxied
        self.isCollecting = isCollecting ?? isProxied
        if isEntering { step = .entering }
    }

    /// The state requested last.
    var wish: LifecycleState { next?.aim ?? aim }

    var isSettled: Bool { step == .settled }
    var isEntering: Bool { step == .entering }
    var isHandingBack: Bool { step == .handingBack }

    // MARK: - Events

    mutating func want(_ wished: LifecycleState, by newWaiters: [Waiter]) -> [Effect] {
        guard isSettled else {
            if next == nil, wished == aim {
                waiters += newWaiters
            } else {
                next = Next(aim: wished, waiters: (next?.waiters ?? []) + newWaiters)
            }
            return []
        }
        if wished == state { return [.answer(newWaiters, .inForce)] }
        aim = wished
        waiters = newWaiters
        return begin()
    }

    /// The connection has been answered.
    ///
    /// - Parameter isInForce: whether nothing more needs to be done about the state. Otherwise it is informed once
    ///   more: its reply shows that it has read the first, and that the bus holds nothing for it.
    mutating func entered(isInForce: Bool) -> [Effect] {
        guard step == .entering else { return [] }
        guard isInForce else {
            step = .closing(state)
            return [.tell(state)]
        }
        step = .settled
        let answered = waiters
        waiters = []
        return (answered.isEmpty ? [] : [.answer(answered, .inForce)]) + beginNext()
    }

    mutating func namesAreSubscribed(_ failure: String?) -> [Effect] {
        guard step == .takingOver else { return [] }
        if let failure {
            isProxied = false
            return giveUp(failure)
        }
        return close(.suspended)
    }

    /// The observer has added names, and does not close its gate before they are subscribed, too. It does so once:
    /// names that it adds from then on are live only when they are subscribed.
    mutating func observerHasAdded() -> [Effect] {
        guard step == .closing(.suspended) else { return [] }
        if hasWaited { return giveUp("The observer keeps adding names.") }
        hasWaited = true
        step = .takingOver
        return [.subscribe]
    }

    mutating func markIsReached() {
        if isProxied { isCollecting = true }
    }

    mutating func observerAnswered(_ failure: String?, isHoldingBack: Bool = false) -> [Effect] {
        switch step {
        case .closing(let new):
            return failure.map { giveUp($0) } ?? settle(in: new)
        case .opening:
            if let failure { return giveUp(failure) }
            if isProxied, isHoldingBack {
                step = .handingBack
                return [.awaitHeldBack]
            }
            return handBack()
        case .settled, .entering, .takingOver, .handingBack:
            return []
        }
    }

    mutating func nothingIsHeldBack() -> [Effect] {
        step == .handingBack ? handBack() : []
    }

    /// Nothing of what was requested since it began is to happen: it is in the state in which it began.
    mutating func stay() -> [Effect] {
        let overtaken = waiters + (next?.waiters ?? [])
        (waiters, next) = ([], nil)
        return overtaken.isEmpty ? [] : [.answer(overtaken, .inForce)]
    }

    /// An external event supersedes the change: the process was stopped and its connection is parked.
    mutating func park(returningTo wished: LifecycleState) -> [Effect] {
        let effects = settle(in: wished == .background ? .background : .suspended, thenWish: nil)
        isProxied = true
        return effects
    }

    /// The connection is gone. No request has to wait for it any longer.
    var end: [Effect] { [.answer(waiters + (next?.waiters ?? []), .inForce)] }

    // MARK: - Steps

    private mutating func begin() -> [Effect] {
        hasWaited = false
        switch aim {
        case .suspended:
            if isProxied { return close(.suspended) }
            isProxied = true
            step = .takingOver
            return [.subscribe]
        case .background:
            return close(.background)
        case .foreground:
            step = .opening
            return [.tell(.foreground)]
        }
    }

    private mutating func close(_ new: LifecycleState) -> [Effect] {
        step = .closing(new)
        if new == .suspended { return isCollecting ? [.tell(new)] : [.mark, .tell(new)] }
        return endProxy() + [.tell(new)]
    }

    private mutating func endProxy() -> [Effect] {
        let effects: [Effect] = (isProxied ? [.unsubscribe] : []) + (isCollecting ? [.forgetPending] : [])
        (isProxied, isCollecting) = (false, false)
        return effects
    }

    private mutating func handBack() -> [Effect] {
        var effects: [Effect] = []
        if isProxied { effects = [.deliver] + endProxy() }
        return effects + settle(in: .foreground)
    }

    private mutating func giveUp(_ failure: String) -> [Effect] {
        // It is not certain which state the observer is in now; it was last in `state`.
        var effects: [Effect] = []
        if state != .suspended { effects = endProxy() }
        aim = state
        step = .settled
        effects.append(.answer(waiters, .failed(failure)))
        waiters = []
        return effects + beginNext()
    }

    private mutating func settle(in new: LifecycleState) -> [Effect] {
        let next = self.next
        self.next = nil
        return settle(in: new, thenWish: next)
    }

    private mutating func settle(
        in new: LifecycleState,
        thenWish next: Next?
    ) -> [Effect] {
        let old = state
        step = .settled
        state = new
        aim = new
        var answered = waiters
        waiters = []
        // Parked: that settles any other request.
        if next == nil, let rest = self.next {
            answered += rest.waiters
            self.next = nil
        }
        var effects: [Effect] = old == new ? [] : [.announce(from: old, to: new)]
        if !answered.isEmpty { effects.append(.answer(answered, .inForce)) }
        self.next = next
        return effects + beginNext()
    }

    private mutating func beginNext() -> [Effect] {
        guard let next else { return [] }
        self.next = nil
        return want(next.aim, by: next.waiters)
    }
}

extension Transition: Equatable where Waiter: Equatable {}
extension Transition: Hashable where Waiter: Hashable {}
extension Transition.Next: Equatable where Waiter: Equatable {}
extension Transition.Next: Hashable where Waiter: Hashable {}

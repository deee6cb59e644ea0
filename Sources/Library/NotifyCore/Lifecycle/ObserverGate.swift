// SPDX-License-Identifier: Apache-2.0

/// Whether posts may pass, and the progress of a change: the observer's rules, the barriers behind them, and the
/// waiters for either.
struct ObserverGate: Hashable {
    typealias Effect = ObserverLifecycle.Effect

    /// Those waiting for a change to take effect.
    enum Waiter: Hashable {
        case registrations
        case call(ObserverLifecycle.Call)
    }

    /// A change in progress to a state in which nothing is heard.
    private struct Closing: Hashable {
        let barrier: Int
        let state: LifecycleState
        let waiters: [Waiter]
    }

    private(set) var position = ObserverLifecycle.Gate.open
    /// The state in effect.
    private(set) var state = LifecycleState.foreground
    /// The target of a change in progress, or else the state.
    private(set) var aim = LifecycleState.foreground
    /// Whether the agent has yet to report in which state a new connection starts, or there is none. Until then no
    /// registration is confirmed.
    private(set) var isEntering = false
    private var closings: [Closing] = []
    private var barrier = 0
    /// Rules that are being restored and have yet to be answered, the barrier behind them, and the waiters for both.
    private var unansweredRules = 0
    private var openingBarrier: Int?
    private var openingWaiters: [Waiter] = []

    // MARK: - The connection

    /// - Parameter missesPosts: whether missed names are delivered only once the rules are in place again.
    mutating func enter(missesPosts: Bool) {
        isEntering = true
        if missesPosts, position == .open { position = .closed }
    }

    mutating func forgetConnection(_ effects: inout [Effect]) {
        // It is not known what the agent has been told; the gate is closed, and the next agent decides.
        if let last = closings.last, aim == last.state { publish(aim, &effects) }
        if position == .opening { position = .closed }
        aim = state
        (closings, openingWaiters, openingBarrier, unansweredRules) = ([], [], nil, 0)
        // Kept posts are heard when the next connection listens, together with those that have to be made good then.
        isEntering = true
    }

    // MARK: - Changes

    /// Drops all posts from here on. It is in effect when the bus holds nothing more for this connection.
    mutating func close(_ new: LifecycleState, for waiter: Waiter, _ effects: inout [Effect]) {
        aim = new
        if position != .closed {
            position = .closed
            effects.append(.withdrawRules)
        }
        barrier += 1
        closings.append(Closing(barrier: barrier, state: new, waiters: openingWaiters + [waiter]))
        (openingWaiters, openingBarrier) = ([], nil)
        effects.append(.askBarrier(barrier))
    }

    /// Lets posts pass again. It is in effect when every later post is heard.
    mutating func open(for waiter: Waiter, _ effects: inout [Effect]) {
        aim = .foreground
        if position == .open { return finish([waiter], &effects) }
        openingWaiters.append(waiter)
        guard position == .closed else { return }
        position = .opening
        unansweredRules = 0
        effects.append(.putRules)
        barrier += 1
        openingBarrier = barrier
        effects.append(.askBarrier(barrier))
    }

    mutating func rulesAreAsked(_ count: Int) {
        if position == .opening { unansweredRules += count }
    }

    mutating func ruleIsAnswered(_ effects: inout [Effect]) {
        unansweredRules = max(0, unansweredRules - 1)
        finishOpening(&effects)
    }

    mutating func barrierPassed(_ number: Int, _ effects: inout [Effect]) {
        if number == openingBarrier {
            openingBarrier = nil
            return finishOpening(&effects)
        }
        guard let index = closings.firstIndex(where: { $0.barrier == number }) else { return }
        let closing = closings.remove(at: index)
        if position == .closed, aim == closing.state { publish(aim, &effects) }
        finish(closing.waiters, &effects)
        finishEntering(&effects)
    }

    private mutating func finishOpening(_ effects: inout [Effect]) {
        guard position == .opening, openingBarrier == nil, unansweredRules == 0 else { return }
        position = .open
        publish(.foreground, &effects)
        let waiters = openingWaiters
        openingWaiters = []
        if !isEntering { effects.append(.confirmRegistrations) }
        finish(waiters, &effects)
    }

    private mutating func publish(_ new: LifecycleState, _ effects: inout [Effect]) {
        guard state != new else { return }
        state = new
        effects.append(.publish(new))
    }

    private mutating func finish(_ waiters: [Waiter], _ effects: inout [Effect]) {
        for waiter in waiters {
            switch waiter {
            case .registrations: finishEntering(&effects)
            case .call(let call): effects.append(.answer(call))
            }
        }
    }

    private mutating func finishEntering(_ effects: inout [Effect]) {
        guard isEntering else { return }
        isEntering = false
        effects.append(.confirmRegistrations)
    }
}

// SPDX-License-Identifier: Apache-2.0

/// Whether a process is stopped because somebody has asked for it: what to do next, without doing it.
///
/// Stopping is the last step of the change that suspends its connections, and letting it go on is the first step of the
/// change that takes it out of that. A wish that was taken back before it was in force stops nothing.
struct Freezing {
    enum Step: Equatable {
        case running
        case freezing
        case frozen
        case thawing
    }

    enum Action: Equatable {
        /// Ends in `froze`.
        case freeze(onBehalfOf: UInt32)
        /// Ends in `thawed`.
        case thaw
        /// Whoever waits for the process to stand still waits no longer: it does, or nobody wants it any more, or this
        /// was in the way.
        case settle(failure: String?)
    }

    private(set) var step = Step.running
    /// Who wants the process to stand still.
    private(set) var wish: UInt32?

    /// Whether it stands still, or may do so in a moment, because the agent has stopped it.
    var isStopped: Bool { step != .running }
    /// Whether somebody wants it to stand still, and it does not yet.
    var isWaiting: Bool { wish != nil && step != .frozen }

    /// Somebody wants the process to stand still once all its connections are suspended.
    mutating func want(by user: UInt32) {
        wish = user
    }

    /// All connections of the process are suspended, and nothing else is wished for any of them.
    mutating func connectionsAreSuspended() -> [Action] {
        guard let wish else { return [] }
        switch step {
        case .running:
            step = .freezing
            return [.freeze(onBehalfOf: wish)]
        // In `froze` and `thawed` it is decided again.
        case .freezing, .thawing: return []
        case .frozen: return [.settle(failure: nil)]
        }
    }

    /// Somebody wants a connection of the process to hear or to drop posts: it must run.
    mutating func mustRun() -> [Action] {
        let isOvertaken = wish != nil
        wish = nil
        let settled: [Action] = isOvertaken ? [.settle(failure: nil)] : []
        guard step == .frozen else { return settled }
        step = .thawing
        return settled + [.thaw]
    }

    /// - Parameter failure: why the process was not stopped.
    mutating func froze(_ failure: String?) -> [Action] {
        guard step == .freezing else { return [] }
        if let failure {
            step = .running
            guard wish != nil else { return [] }
            wish = nil
            return [.settle(failure: failure)]
        }
        step = .frozen
        // Meanwhile somebody may have wanted it to run.
        if wish == nil {
            step = .thawing
            return [.thaw]
        }
        return [.settle(failure: nil)]
    }

    /// - Parameter failure: why it could not be let go on. Then it counts as stopped, and is tried again with the next
    ///   wish.
    mutating func thawed(_ failure: String?) {
        guard step == .thawing else { return }
        step = failure == nil ? .running : .frozen
    }
}

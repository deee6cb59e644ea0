// SPDX-License-Identifier: Apache-2.0

/// Whether a process is frozen on request: decides what to do next, without doing it.
///
/// Freezing is the last step of the change that suspends its connections, and thawing is the first step of the change
/// that resumes them. A request that was withdrawn before it took effect freezes nothing.
struct Freezing: Hashable {
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
        /// Those waiting for the process to be frozen wait no longer: it is, nobody wants that any more, or this
        /// prevented it.
        case settle(failure: String?)
    }

    private(set) var step = Step.running
    /// Who wants the process to be frozen.
    private(set) var wish: UInt32?
    /// Whether it must run once more before it is frozen: it was told of a state since it was being stopped.
    private var mustContinue = false

    /// Whether it is frozen, or may be in a moment, because the agent has stopped it.
    var isStopped: Bool { step != .running }

    /// Somebody wants the process to be frozen once all its connections are suspended.
    mutating func want(by user: UInt32) {
        wish = user
    }

    /// All connections of the process are suspended, and nothing else is requested for any of them.
    mutating func connectionsAreSuspended() -> [Action] {
        guard let wish else { return [] }
        switch step {
        case .running:
            step = .freezing
            return [.freeze(onBehalfOf: wish)]
        // `froze` and `thawed` decide on it again.
        case .freezing, .thawing: return []
        case .frozen: return [.settle(failure: nil)]
        }
    }

    /// Somebody wants a connection of the process to hear or to drop posts, so it must run.
    mutating func mustRun() -> [Action] {
        let isOvertaken = wish != nil
        wish = nil
        let settled: [Action] = isOvertaken ? [.settle(failure: nil)] : []
        if step == .freezing { mustContinue = true }
        guard step == .frozen else { return settled }
        step = .thawing
        return settled + [.thaw]
    }

    /// A connection that the process had begun before it was frozen has registered: it must learn its state, or the bus
    /// would queue posts for it. After that the process is frozen again.
    mutating func connectionHasCome() -> [Action] {
        switch step {
        case .running, .thawing: return []
        case .freezing:
            mustContinue = true
            return []
        case .frozen:
            step = .thawing
            return [.thaw]
        }
    }

    /// - Parameter failure: why the process was not frozen.
    mutating func froze(_ failure: String?) -> [Action] {
        guard step == .freezing else { return [] }
        defer { mustContinue = false }
        if let failure {
            step = .running
            guard wish != nil else { return [] }
            wish = nil
            return [.settle(failure: failure)]
        }
        step = .frozen
        // In the meantime somebody may have wanted it to run, if only for a moment.
        if wish == nil || mustContinue {
            step = .thawing
            return [.thaw]
        }
        return [.settle(failure: nil)]
    }

    /// - Parameter failure: why it could not be thawed. Then it counts as frozen, and is retried with the next request.
    mutating func thawed(_ failure: String?) {
        guard step == .thawing else { return }
        step = failure == nil ? .running : .frozen
    }
}

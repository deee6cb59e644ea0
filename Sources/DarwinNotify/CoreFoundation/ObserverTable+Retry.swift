// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyBus

/// When to try again to observe what could not be observed.
struct RetryState {
    /// In milliseconds.
    private static let first = 100
    private static let last = 5_000

    private var delay = RetryState.first
    private var isScheduled = false
    /// Whether there may be names to try.
    private(set) var isNeeded = false

    /// - Returns: after how many milliseconds to try; nil if that is already arranged.
    mutating func schedule() -> Int? {
        isNeeded = true
        if isScheduled { return nil }
        isScheduled = true
        defer { delay = min(delay * 2, RetryState.last) }
        return delay
    }

    /// An attempt at all names begins.
    mutating func begin() {
        isNeeded = false
        isScheduled = false
    }

    /// There is a bus.
    mutating func reset() {
        delay = RetryState.first
    }
}

extension ObserverTable {
    enum RetryTime { case atOnce, later }

    private static let queue = DispatchQueue(label: "org.notifybus.darwin.retry")

    /// Arranges for another attempt at the names that could not be observed, if there are any. Later means 0.1 s after
    /// the first failure, then less and less often, at least every 5 s.
    func retry(_ time: RetryTime) {
        let delay: Int? = state.withLock { state in
            switch time {
            case .later:
                return state.retry.schedule()
            case .atOnce:
                state.retry.reset()
                return state.retry.isNeeded ? 0 : nil
            }
        }
        guard let delay else { return }
        ObserverTable.queue.asyncAfter(deadline: .now() + .milliseconds(delay)) { [self] in attempt() }
    }

    /// Tries the names, until it turns out that there is no bus.
    private func attempt() {
        let missing = state.withLock { state in
            state.retry.begin()
            return state.names.values.filter { $0.isMissing }
        }
        for observed in missing where state.withLock({ _ in observed.beginOpening() }) {
            guard let error = open(observed) else {
                state.withLock { $0.retry.reset() }
                continue
            }
            retry(.later)
            if ObserverTable.hasNoBus.contains(error.code) { return }
        }
    }

    private static let hasNoBus: Set<NotifyBusError.Code> = [.noBus, .disconnected, .timedOut, .closed]
}

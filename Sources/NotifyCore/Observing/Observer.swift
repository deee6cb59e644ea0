// SPDX-License-Identifier: Apache-2.0

/// One registration: a callback, what keeps it from running once it is cancelled, and what waits for it.
package final class Observer: Sendable {
    /// Who runs the callback.
    enum Runner: Sendable {
        /// The center's own thread.
        case center(Engine)
        /// Somebody else, who is told when something begins to wait.
        case client(any ObserverClient)
    }

    private struct Waiting {
        var names = CoalescingQueue<NotifyName>()
        /// Whether somebody has been told, and has not yet found the queue empty.
        var isAnnounced = false
    }

    let runner: Runner
    /// Whether somebody else runs the callback; to be asked for each delivery.
    let isClient: Bool
    let counters: Counters
    /// Whether it is not told what its own center posts.
    let ignoresOwnPosts: Bool
    let cancellation = CancellationGuard()
    private let callback: @Sendable (NotifyName) -> Void
    private let waiting = Monitor(Waiting())

    init(
        runner: Runner,
        counters: Counters,
        ignoresOwnPosts: Bool = false,
        callback: @escaping @Sendable (NotifyName) -> Void
    ) {
        self.runner = runner
        isClient = if case .client = runner { true } else { false }
        self.counters = counters
        self.ignoresOwnPosts = ignoresOwnPosts
        self.callback = callback
    }

    /// Runs the callback now, unless the observer was cancelled.
    @inline(__always)
    package func call(_ name: NotifyName) {
        if cancellation.run({ callback(name) }) { counters.delivered.increment() }
    }

    /// Puts a name in the queue.
    ///
    /// - Returns: whether somebody must be told that something waits.
    func enqueue(_ name: NotifyName) -> Bool {
        if cancellation.isCancelled { return false }
        return waiting.withLock { waiting in
            switch waiting.names.enqueue(name) {
            case .queued: break
            case .coalesced: counters.coalescedDeliveries.increment()
            case .full: counters.dropped.increment()
            }
            defer { waiting.isAnnounced = true }
            return !waiting.isAnnounced
        }
    }

    /// Takes the next name that waits; nil ends the turn of the one who was told.
    package func takeNext() -> NotifyName? {
        waiting.withLock { waiting in
            if let name = waiting.names.popFirst() { return name }
            waiting.isAnnounced = false
            return nil
        }
    }

    /// Takes the next name for somebody who has no callback; counts as a delivery.
    package func takeNextToHandOver() -> NotifyName? {
        guard let name = takeNext() else { return nil }
        counters.delivered.increment()
        return name
    }

    var isCancelled: Bool { cancellation.isCancelled }
    var waitingCount: Int { waiting.withLock { $0.names.count } }

    /// Cancels: when this returns, no callback runs and none will.
    ///
    /// - Parameter waits: whether to wait for a callback that is running in another thread.
    /// - Returns: whether such a callback still runs.
    @discardableResult
    func cancel(waits: Bool = true) -> Bool {
        let isRunning = cancellation.cancel(waits: waits)
        waiting.withLock { $0.names.removeAll() }
        if case .client(let client) = runner { client.end() }
        return isRunning
    }
}

/// Somebody who fetches an observer's names on threads of their own.
package protocol ObserverClient: Sendable {
    /// Something has begun to wait. Not called again until `takeNext` has found nothing.
    func wake(for observer: Observer)
    /// The observer was cancelled.
    func end()
}

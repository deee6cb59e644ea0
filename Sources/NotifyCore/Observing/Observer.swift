// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A registration: a callback, the guard that keeps it from running once it is cancelled, and its queue.
package final class Observer: Sendable {
    /// Who runs the callback.
    enum Runner: Sendable {
        /// The center's own thread.
        case center(Engine)
        /// A client, which is notified when something is queued.
        case client(any ObserverClient)
    }

    let runner: Runner
    /// Whether a client runs the callback; checked for each delivery.
    let isClient: Bool
    let counters: Counters
    /// Whether it ignores what its own center posts.
    let ignoresOwnPosts: Bool
    let cancellation = CancellationGuard()
    private let callback: @Sendable (NotifyName) -> Void
    /// What is queued. Most observers never need it: their callbacks run as soon as a post is read.
    private let queue = AtomicLazyReference<Monitor<DeliveryQueue<NotifyName>>>()

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

    /// Queues a name.
    ///
    /// - Returns: whether the client must be notified that something is queued.
    func enqueue(_ name: NotifyName) -> Bool {
        if cancellation.isCancelled { return false }
        let queue = queue.load() ?? queue.storeIfNil(Monitor(DeliveryQueue()))
        let (outcome, mustAnnounce) = queue.withLock { $0.enqueue(name) }
        switch outcome {
        case .queued: break
        case .coalesced: counters.coalescedDeliveries.increment()
        case .full: counters.dropped.increment()
        }
        return mustAnnounce
    }

    /// Takes the next queued name; nil ends the turn of the notified client.
    package func takeNext() -> NotifyName? {
        queue.load()?.withLock { $0.takeNext() }
    }

    /// Takes the next name for a client that has no callback; counts as a delivery.
    package func takeNextToHandOver() -> NotifyName? {
        guard let name = takeNext() else { return nil }
        counters.delivered.increment()
        return name
    }

    var isCancelled: Bool { cancellation.isCancelled }
    var waitingCount: Int { queue.load()?.withLock { $0.count } ?? 0 }

    /// Cancels: when this returns, no callback is running and none will.
    ///
    /// - Parameter waits: whether to wait for a callback that is running in another thread.
    func cancel(waits: Bool = true) {
        cancellation.cancel(self, waits: waits)
        queue.load()?.withLock { $0.removeAll() }
        if case .client(let client) = runner { client.end() }
    }

    /// Calls `completion` once no callback of this observer, which was cancelled, is running in another thread: now, or on
    /// the thread that runs it.
    func whenIdle(_ completion: @escaping @Sendable () -> Void) {
        cancellation.whenIdle(self, completion)
    }

    /// The same for several.
    static func whenIdle(_ observers: ArraySlice<Observer>, _ completion: @escaping @Sendable () -> Void) {
        guard let index = observers.firstIndex(where: { $0.cancellation.isRunningElsewhere }) else {
            return completion()
        }
        observers[index].whenIdle { whenIdle(observers[(index + 1)...], completion) }
    }
}

/// A client that fetches an observer's names on its own threads.
package protocol ObserverClient: Sendable {
    /// Something was queued. Not called again until `takeNext` has found nothing.
    func wake(for observer: Observer)
    /// The observer was cancelled.
    func end()
}

/// The names that wait for a callback, and whether whoever runs it knows that something waits.
package struct DeliveryQueue<Name: Coalescing> {
    private var names: CoalescingQueue<Name>
    /// Whether it was told, and has not found the queue empty since.
    private var isAnnounced = false

    package init(_ names: CoalescingQueue<Name> = CoalescingQueue()) { self.names = names }

    package var count: Int { names.count }

    /// - Returns: also whether to tell whoever runs the callback.
    package mutating func enqueue(_ name: Name) -> (outcome: CoalescingQueue<Name>.Outcome, mustAnnounce: Bool) {
        defer { isAnnounced = true }
        return (names.enqueue(name), !isAnnounced)
    }

    /// Takes the next name; nil ends the turn of whoever runs the callback.
    package mutating func takeNext() -> Name? {
        if let name = names.popFirst() { return name }
        isAnnounced = false
        return nil
    }

    package mutating func removeAll() {
        names.removeAll()
    }
}

extension DeliveryQueue: Equatable where Name: Equatable {}
extension DeliveryQueue: Hashable where Name: Hashable {}

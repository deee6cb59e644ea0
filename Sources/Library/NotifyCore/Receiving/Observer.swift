// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// A registration: a callback, the guard that keeps it from running once it is cancelled, and its queue.
package final class Observer: Sendable {
    /// What runs the callback.
    enum Runner: Sendable {
        /// The center's own thread.
        case center(any CallbackThread)
        /// The center's own thread; the one that reads while that is in another callback, if this one is short.
        case prompt(any CallbackThread, isShort: @Sendable () -> Bool)
        /// A client, which is notified when something is queued.
        case client(any ObserverClient)
        /// A listener, which is passed each post as it is read.
        case listener(ListenerReference)
    }

    let runner: Runner
    /// Whether the center's thread runs no callback for it; checked for each delivery.
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
        isClient =
            switch runner {
            case .center, .prompt: false
            case .client, .listener: true
            }
        self.counters = counters
        self.ignoresOwnPosts = ignoresOwnPosts
        self.callback = callback
    }

    /// Runs the callback now, unless the observer was cancelled.
    @inline(__always)
    package func call(_ name: NotifyName) {
        if cancellation.run({ callback(name) }) { counters.delivered.increment() } else { callLater(name) }
    }

    /// It may be running already, on the other thread, which has found nothing waiting.
    private func callLater(_ name: NotifyName) {
        guard case .prompt(let thread, _) = runner, !isCancelled else { return }
        thread.offer(name, to: self)
        // This thread may be the one that takes it again.
        sched_yield()
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
        case .full: counters.noteLost()
        }
        return mustAnnounce
    }

    /// Queues a name for the observer, on any thread.
    func offer(_ name: NotifyName) {
        switch runner {
        case .center(let thread): thread.offer(name, to: self)
        case .prompt(let thread, let isShort):
            // It may also be running already, on the other thread.
            let isCalled = waitingCount == 0 && isShort() && cancellation.run { callback(name) }
            if isCalled { counters.delivered.increment() } else { thread.offer(name, to: self) }
        case .client(let client): if enqueue(name) { client.wake(for: self) }
        case .listener: break  // It has been passed the post.
        }
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

    /// The listener that is passed the posts as they are read, if there is one.
    var listener: (any PostListener)? { if case .listener(let reference) = runner { reference.listener } else { nil } }

    var isCancelled: Bool { cancellation.isCancelled }
    var waitingCount: Int { queue.load()?.withLock { $0.count } ?? 0 }

    /// Cancels: when this returns, no callback begins any more.
    func cancel() {
        cancellation.cancel()
        queue.load()?.withLock { $0.removeAll() }
        if case .client(let client) = runner { client.end() }
    }

    /// Waits until no callback of this observer, which was cancelled, is running in another thread.
    func waitUntilIdle(until deadline: MonotonicTime? = nil) -> Ending {
        cancellation.waitUntilIdle(self, until: deadline)
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

/// How the wait for callbacks that are running in other threads has ended.
enum Ending: Sendable {
    /// They are not running any more.
    case idle
    /// One of them waits, perhaps by way of others, for a callback of the thread that would wait.
    case circle
    case timedOut

    func get() throws(NotifyBusError) {
        switch self {
        case .idle: return
        case .circle: throw .deadlock
        case .timedOut: throw .stillRunning
        }
    }
}

/// The thread of a center that runs callbacks, one at a time.
protocol CallbackThread: AnyObject, Sendable {
    /// Queues a name for an observer.
    func offer(_ name: NotifyName, to observer: Observer)
    /// Schedules a call.
    func enqueue(_ call: @escaping @Sendable () -> Void)
    /// Schedules a call after all deliveries that are now queued.
    func enqueueLast(_ call: @escaping @Sendable () -> Void)
}

/// A client that fetches an observer's names on its own threads.
package protocol ObserverClient: Sendable {
    /// Something was queued. Not called again until `takeNext` has found nothing.
    func wake(for observer: Observer)
    /// The observer was cancelled.
    func end()
}

/// Notified of the posts of certain names, and of their senders, on the thread that drives the connection.
package protocol PostListener: AnyObject {
    /// - Parameter sender: the unique name of the connection that posted; it may have left the bus since.
    func handle(post name: NotifyName, from sender: String)
}

/// The listener that an observer stands for.
///
/// `@unchecked Sendable`: only the thread that drives the connection passes posts to it.
final class ListenerReference: @unchecked Sendable {
    private(set) weak var listener: (any PostListener)?

    init(_ listener: any PostListener) { self.listener = listener }
}

/// The names that wait for a callback, and whether the thread that runs it knows that something waits.
package struct DeliveryQueue<Name: Coalescing> {
    private var names: CoalescingQueue<Name>
    /// Whether it was told, and has not found the queue empty since.
    private var isAnnounced = false

    package init(_ names: CoalescingQueue<Name> = CoalescingQueue()) { self.names = names }

    package var count: Int { names.count }

    /// - Returns: also whether to tell the thread that runs the callback.
    package mutating func enqueue(_ name: Name) -> (outcome: CoalescingQueue<Name>.Outcome, mustAnnounce: Bool) {
        defer { isAnnounced = true }
        return (names.enqueue(name), !isAnnounced)
    }

    /// Takes the next name; nil ends the turn of the thread that runs the callback.
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

/// Ensures that no callback of an observer runs once its cancellation has returned. A part of the observer: an object of
/// its own would be one more for each.
struct CancellationGuard: ~Copyable, Sendable {
    private static let running: UInt8 = 1
    private static let cancelled: UInt8 = 2

    /// The waiters for the end of a callback that was cancelled: this is rare, so all share one.
    private struct Endings {
        /// For each waiting thread, the observer whose callback it waits for.
        var threads: [UInt: Observer] = [:]
        /// What is to be called, for those that don't wait in a thread.
        var completions: [(observer: Observer, completion: @Sendable () -> Void)] = []

        /// - Returns: the completions of callbacks that have ended.
        mutating func takeEnded() -> [@Sendable () -> Void] {
            if completions.isEmpty { return [] }
            var ended: [@Sendable () -> Void] = []
            // Each is looked at once: its callback may end at any moment.
            completions.removeAll { one in
                if one.observer.cancellation.isRunning { return false }
                ended.append(one.completion)
                return true
            }
            return ended
        }
    }

    private static let endings = Monitor(Endings())

    private let state = Atomic<UInt8>(0)
    /// The thread that is running the callback, so that a callback can cancel its own observer.
    private let runner = Atomic<UInt>(0)

    var isCancelled: Bool { state.load(ordering: .acquiring) & CancellationGuard.cancelled != 0 }

    /// Runs `body`, unless the observer was cancelled. One thread at a time.
    ///
    /// - Returns: whether it ran.
    @inline(__always)
    func run(_ body: () -> Void) -> Bool {
        guard
            state.compareExchange(expected: 0, desired: CancellationGuard.running, ordering: .acquiringAndReleasing)
                .exchanged
        else { return false }
        runner.store(pthread_self(), ordering: .relaxed)
        body()
        runner.store(0, ordering: .relaxed)
        let before = state.bitwiseAnd(~CancellationGuard.running, ordering: .acquiringAndReleasing).oldValue
        if before & CancellationGuard.cancelled != 0 {
            // Taking the lock orders this with a waiter that has just checked and is about to sleep.
            let completions = CancellationGuard.endings.withLock { $0.takeEnded() }
            CancellationGuard.endings.wakeAll()
            for completion in completions { completion() }
        }
        return true
    }

    /// Prevents further callbacks.
    func cancel() {
        state.bitwiseOr(CancellationGuard.cancelled, ordering: .acquiringAndReleasing)
    }

    /// Waits for a callback that is running, unless it is the caller, or waits for the caller's.
    ///
    /// - Parameter observer: the observer that this is a part of. It was cancelled.
    func waitUntilIdle(_ observer: Observer, until deadline: MonotonicTime?) -> Ending {
        guard isRunningElsewhere else { return .idle }
        let thread = pthread_self()
        let ending: Ending? = CancellationGuard.endings.wait(until: deadline) { endings in
            guard isRunning else {
                endings.threads[thread] = nil
                return .idle
            }
            if endings.threads[thread] == nil {
                endings.threads[thread] = observer
                if CancellationGuard.isCircle(of: endings.threads, from: thread) {
                    endings.threads[thread] = nil
                    return .circle
                }
            }
            return nil
        }
        if let ending { return ending }
        CancellationGuard.endings.withLock { $0.threads[thread] = nil }
        return .timedOut
    }

    /// Calls `completion` once no callback is running in another thread: now, or on the thread that runs it.
    ///
    /// - Parameter observer: the observer that this is a part of. It was cancelled.
    func whenIdle(_ observer: Observer, _ completion: @escaping @Sendable () -> Void) {
        let isIdle = CancellationGuard.endings.withLock { endings in
            if !isRunningElsewhere { return true }
            endings.completions.append((observer, completion))
            return false
        }
        if isIdle { completion() }
    }

    var isRunningElsewhere: Bool { isRunning && runner.load(ordering: .relaxed) != pthread_self() }

    private var isRunning: Bool { state.load(ordering: .acquiring) & CancellationGuard.running != 0 }

    /// Whether a thread waits for a callback that waits, perhaps by way of others, for a callback of that thread.
    ///
    /// That is exact. Each thread has noted which callback it runs before it could note here that it waits, under the
    /// lock, so the last thread of a circle sees all of it. And one whose callback has ended in the meantime, though it is
    /// yet to be woken, is passed over: a cancelled observer's callback does not run again.
    private static func isCircle(of waiting: [UInt: Observer], from start: UInt) -> Bool {
        var thread = start
        for _ in waiting {
            guard let observer = waiting[thread], observer.cancellation.isRunning else { return false }
            thread = observer.cancellation.runner.load(ordering: .relaxed)
            if thread == start { return true }
        }
        return false
    }
}

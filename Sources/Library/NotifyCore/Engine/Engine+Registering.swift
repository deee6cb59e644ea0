// SPDX-License-Identifier: Apache-2.0

/// An observer and the topics under which it is registered.
struct Subscription: Sendable {
    let observer: Observer
    /// Heard over the bus.
    var busTopics: [Topic] = []
    /// Heard inside the process.
    var processTopics: [Topic] = []
}

extension Engine {
    /// Registers an observer, and waits until it hears every later post.
    ///
    /// - Parameters:
    ///   - limit: how long the bus may take.
    ///   - waitsForBus: whether to keep the registration if there is no bus, and to complete it when there is one.
    /// - Returns: also why it is not live yet, which is possible only if it waits for the bus.
    func register(
        _ observer: Observer,
        _ keys: [Topic.Key],
        within limit: Duration = .seconds(25),
        waitsForBus: Bool = false
    ) throws(NotifyBusError) -> (Subscription, delay: NotifyBusError?) {
        let waitsForBus = waitsForBus || self.waitsForBus
        let subscription = try enter(observer, keys, waitsForBus: waitsForBus)
        guard !subscription.busTopics.isEmpty else { return (subscription, nil) }
        let deadline = MonotonicTime.after(limit)
        wake()
        prepareToWait()
        switch registry.waitUntilActive(subscription.busTopics, waitsForBus: waitsForBus, deadline: deadline) {
        case .live: return (subscription, nil)
        case .delayed(let error): return (subscription, error)
        case .failed(let error):
            cancel(subscription)
            _ = observer.waitUntilIdle()
            throw error
        }
    }

    /// Registers an observer, and returns immediately.
    ///
    /// - Parameters:
    ///   - acceptsDelay: whether it is enough that the registration is kept until there is a bus.
    ///   - whenLive: called once, when every later post is heard, or when the registration has failed: in this
    ///     call, or on the thread that reads, so it must not block. Not called if the registration was cancelled first.
    func register(
        _ observer: Observer,
        _ keys: [Topic.Key],
        waitsForBus: Bool,
        acceptsDelay: Bool,
        whenLive: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) throws(NotifyBusError) -> Subscription {
        let subscription = try enter(observer, keys, waitsForBus: waitsForBus)
        if !subscription.busTopics.isEmpty { wake() }
        notify(of: subscription, waitsForBus: waitsForBus, acceptsDelay: acceptsDelay, whenLive)
        return subscription
    }

    /// Reports the outcome of a registration once, in this call or on the thread that reads; not after it was cancelled.
    func notify(
        of subscription: Subscription,
        waitsForBus: Bool,
        acceptsDelay: Bool = false,
        _ whenLive: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) {
        registry.notify(
            Registry.Notice(
                observer: subscription.observer,
                waitsForBus: waitsForBus,
                acceptsDelay: acceptsDelay,
                topics: subscription.busTopics[...],
                tell: whenLive
            )
        )
    }

    private func enter(
        _ observer: Observer,
        _ keys: [Topic.Key],
        waitsForBus: Bool
    ) throws(NotifyBusError) -> Subscription {
        try start()
        var busKeys: [Topic.Key] = []
        var processKeys: [Topic.Key] = []
        for key in keys {
            switch key {
            // Such a bus is in the process, and apart from others there.
            case _ where process != nil:
                busKeys.append(key)
            case .name(let name) where name.storage.scope == .process:
                processKeys.append(key)
            case .name:
                busKeys.append(key)
            case .prefix(let prefix):
                if ProcessHub.canMatch(prefix: prefix) { processKeys.append(key) }
                if !ProcessHub.containsAll(ofPrefix: prefix) { busKeys.append(key) }
            }
        }
        guard observers.withLock({ $0.add(observer) }) else { throw .closed }
        var subscription = Subscription(observer: observer)
        do throws(NotifyBusError) {
            subscription.busTopics = try registry.add(observer, to: busKeys, waitsForBus: waitsForBus)
        } catch {
            cancel(subscription)
            throw error
        }
        subscription.processTopics = ProcessHub.add(observer, to: processKeys)
        return subscription
    }

    /// Ends a registration: when this returns, its callback does not begin any more.
    func cancel(_ subscription: Subscription) {
        let observer = subscription.observer
        observer.cancel()
        if !observers.withLock({ $0.remove(observer) }) { return }
        registry.forgetNotice(of: observer, in: subscription.busTopics)
        if !subscription.processTopics.isEmpty { ProcessHub.remove(observer, from: subscription.processTopics) }
        if registry.remove(observer, from: subscription.busTopics) { wake() }
    }

    /// Cancels every observer, stops the threads, and waits until no callback is running in another one.
    ///
    /// It goes on with all of them if it can't wait for one, and then leaves the threads to end by themselves: one of them
    /// may be in that callback.
    func close(until deadline: MonotonicTime? = nil) -> Ending {
        let all = observers.withLock { $0.close() }
        for observer in all { observer.cancel() }
        var ending = Ending.idle
        for observer in all {
            let one = observer.waitUntilIdle(until: deadline)
            if case .idle = ending { ending = one }
        }
        if case .idle = ending { stop() } else { stop(waits: false) }
        return ending
    }

    /// The same without waiting.
    ///
    /// - Parameter completion: called once no callback is running.
    func close(then completion: @escaping @Sendable () -> Void) {
        let all = observers.withLock { $0.close() }
        for observer in all { observer.cancel() }
        stop(waits: false)
        Observer.whenIdle(all[...], completion)
    }

    func barrier(until deadline: MonotonicTime?) throws(NotifyBusError) {
        let barrier = Barrier()
        guard command(.barrier(barrier)) else { throw .closed }
        try barrier.wait(until: deadline)
    }
}

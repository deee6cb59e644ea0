// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An observer and the topics under which it is registered.
struct Subscription: Sendable {
    let observer: Observer
    /// Heard over the bus.
    var busTopics: [Topic] = []
    /// Heard inside the process.
    var processTopics: [Topic] = []
}

extension Engine {
    /// How long the bus may take to confirm a registration.
    private static let registrationLimit = Duration.seconds(25)

    /// Sends the changed rules to the bus and waits for its answers, if the leader sleeps; otherwise leaves it to that.
    ///
    /// Messages that arrive meanwhile are handled, except that callbacks are left to the leader.
    private func updateRules(waitingFor topics: ArraySlice<Topic>, until deadline: MonotonicTime? = nil) {
        guard lendsLead, let threads, let number = threads.borrowLead() else { return wake() }
        let before = observing.pollRequest
        var mustWake = true
        if observing.isReady, let commands = registry.takeRuleCommands() {
            var pending = topics
            if !pending.isEmpty { threads.sleep.ignoreObserving() }
            observing.run(commands, on: self)
            while registry.isUndecided(&pending), exchangeMessages(threads, until: deadline) {}
            if !topics.isEmpty { threads.sleep.watchObserving(observing.pollRequest) }
            mustWake = observing.pollRequest != before
        }
        threads.returnLead(to: number)
        if mustWake { wake() }
    }

    /// Waits for the bus and handles what it sends, for a thread that has borrowed the lead.
    ///
    /// - Returns: whether it may continue.
    private func exchangeMessages(_ threads: EngineThreads, until deadline: MonotonicTime?) -> Bool {
        var requests = (
            pollfd(fd: threads.wakeDescriptor.descriptor, events: Int16(POLLIN), revents: 0),
            observing.pollRequest.pollfd
        )
        // What is to be done by the time is the leader's.
        let end = [deadline, observing.pollRequest.deadline].compactMap { $0 }.min()
        let count = withUnsafeMutableBytes(of: &requests) { bytes in
            poll(bytes.assumingMemoryBound(to: pollfd.self).baseAddress, 2, end?.millisecondsFromNow ?? -1)
        }
        if count < 0 { return errno == EINTR }
        if count == 0 || requests.0.revents != 0 { return false }
        observing.service(requests.1.revents, on: self)
        while let arrival = observing.nextArrival(on: self) {
            for observer in arrival.audience.observers { observer.offer(arrival.name) }
        }
        return true
    }

    /// Registers an observer, and waits until it hears every later post.
    ///
    /// - Parameters:
    ///   - limit: how long to wait at most, if that is less than the bus may take.
    ///   - waitsForBus: whether to keep the registration if there is no bus, and to complete it when there is one.
    /// - Returns: also why it is not live yet, which is possible only if it waits for the bus.
    func register(
        _ observer: Observer,
        _ keys: [Topic.Key],
        within limit: Duration? = nil,
        waitsForBus: Bool = false
    ) throws(NotifyBusError) -> (Subscription, delay: NotifyBusError?) {
        let waitsForBus = waitsForBus || self.waitsForBus
        let subscription = try enter(observer, keys, waitsForBus: waitsForBus)
        guard !subscription.busTopics.isEmpty else { return (subscription, nil) }
        let deadline = MonotonicTime.after(min(limit ?? Engine.registrationLimit, Engine.registrationLimit))
        updateRules(waitingFor: subscription.busTopics[...], until: deadline)
        prepareToWait()
        switch registry.waitUntilActive(subscription.busTopics, waitsForBus: waitsForBus, deadline: deadline) {
        case .live: return (subscription, nil)
        case .delayed(let error): return (subscription, error)
        case .failed(let error):
            cancel(subscription)
            throw error
        }
    }

    /// Registers an observer, and returns immediately.
    ///
    /// - Parameter whenLive: called once, on the center's thread, when every later post is heard, or when the
    ///   registration has failed. Not called after it was cancelled.
    func register(
        _ observer: Observer,
        _ keys: [Topic.Key],
        waitsForBus: Bool,
        whenLive: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) throws(NotifyBusError) -> Subscription {
        let subscription = try enter(observer, keys, waitsForBus: waitsForBus)
        if !subscription.busTopics.isEmpty { wake() }
        notify(of: subscription, waitsForBus: waitsForBus, whenLive)
        return subscription
    }

    /// Reports the outcome of a registration once, on the center's thread; not after it was cancelled.
    func notify(
        of subscription: Subscription,
        waitsForBus: Bool,
        _ whenLive: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) {
        let observer = subscription.observer
        registry.notify(
            Registry.Notice(
                observer: observer,
                waitsForBus: waitsForBus,
                topics: subscription.busTopics[...],
                tell: { result in
                    self.enqueue { if !observer.isCancelled { whenLive(result) } }
                }
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
            case .name(let name) where name.storage.scope == .process:
                processKeys.append(key)
            case .name:
                busKeys.append(key)
            case .prefix(let prefix):
                if ProcessHub.canMatch(prefix: prefix) { processKeys.append(key) }
                if !ProcessHub.containsAll(ofPrefix: prefix) { busKeys.append(key) }
            }
        }
        observers.withLock { $0.add(observer) }
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

    /// Ends a registration: when this returns, the callback is not running and never will.
    ///
    /// - Parameter waits: whether to wait for a callback that is running in another thread.
    /// - Returns: whether such a callback is still running.
    @discardableResult
    func cancel(_ subscription: Subscription, waits: Bool = true) -> Bool {
        let observer = subscription.observer
        let isRunning = observer.cancel(waits: waits)
        if !observers.withLock({ $0.remove(observer) }) { return isRunning }
        registry.forgetNotice(of: observer)
        if !subscription.processTopics.isEmpty { ProcessHub.remove(observer, from: subscription.processTopics) }
        if registry.remove(observer, from: subscription.busTopics) { updateRules(waitingFor: []) }
        return isRunning
    }

    /// Cancels every observer, and stops the threads.
    func close() {
        let all = observers.withLock { registered in
            var all: [Observer] = []
            registered.forEach { all.append($0) }
            return all
        }
        for observer in all { observer.cancel() }
        stop()
    }

    /// Schedules work for the leader.
    func command(_ command: Registry.Command) {
        registry.state.withLock { $0.commands.append(command) }
        wake()
    }

    func barrier(until deadline: MonotonicTime?) throws(NotifyBusError) {
        let barrier = Barrier()
        command(.barrier(barrier))
        try barrier.wait(until: deadline)
    }
}

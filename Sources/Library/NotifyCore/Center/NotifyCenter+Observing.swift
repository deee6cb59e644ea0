// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Observes names with callbacks on the center's thread, and waits until the bus has confirmed the registration.
    package func addObserver(
        for name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false,
        timeout: Duration,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(NotifySubject(names: [name] + others), ignoringOwnPosts, nil, within: timeout, callback)
    }

    /// Observes a name with a callback that never blocks, and that other callbacks don't delay: while one is slow, it runs
    /// on the thread that reads.
    ///
    /// - Parameter isShort: whether the callback is short enough for that now. Otherwise, and if the name stays inside the
    ///   process, where nothing is read, it waits as others do.
    package func addPromptObserver(
        for name: NotifyName,
        ignoringOwnPosts: Bool,
        timeout: Duration,
        isShort: @escaping @Sendable () -> Bool,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        let observer = makePromptObserver(of: name, ignoringOwnPosts, isShort, callback)
        return Observation(center: self, subscription: try engine.register(observer, [.name(name)], within: timeout).0)
    }

    /// Observes everything that a subject includes, in the same way.
    package func addObserver(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        timeout: Duration,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(subject, ignoringOwnPosts, nil, within: timeout, callback)
    }

    /// Observes, and blocks the thread until the registration is live.
    ///
    /// - Parameters:
    ///   - client: fetches deliveries on its own threads; nil for callbacks on the center's thread.
    ///   - callback: what `Observer.call` runs.
    package func observe(
        _ subject: NotifySubject,
        _ ignoringOwnPosts: Bool,
        _ client: (any ObserverClient)?,
        within limit: Duration,
        _ callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        let observer = makeObserver(client, ignoringOwnPosts, callback)
        let subscription = try engine.register(observer, NotifyCenter.keys(for: subject), within: limit).0
        return Observation(center: self, subscription: subscription)
    }

    /// Observes without waiting for the bus.
    ///
    /// - Parameters:
    ///   - waitsForBus: whether to keep the registration if there is no bus, and to complete it when there is one.
    ///   - acceptsDelay: whether it is enough that the registration is kept until there is a bus.
    ///   - client: fetches the deliveries; nil for callbacks on the center's thread.
    ///   - whenLive: called once, when every later post is heard, or when the registration has failed. With
    ///     `waitsForBus` only errors that waiting can't fix are failures. It runs on the thread that reads, or in this
    ///     call, and must not block. Not called if the observation was cancelled first.
    package func startObserving(
        _ subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        waitsForBus: Bool = false,
        acceptsDelay: Bool = false,
        client: (any ObserverClient)? = nil,
        using callback: @escaping @Sendable (NotifyName) -> Void = { _ in },
        whenLive: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) throws(NotifyBusError) -> Observation {
        let observer = makeObserver(client, ignoringOwnPosts, callback)
        let keys = try NotifyCenter.keys(for: subject)
        let subscription = try engine.register(
            observer,
            keys,
            waitsForBus: waitsForBus,
            acceptsDelay: acceptsDelay,
            whenLive: whenLive
        )
        return Observation(center: self, subscription: subscription)
    }

    /// Observes in the same way, and if there is no bus, keeps the registration until there is one.
    ///
    /// Waits until the registration is live, or is known to be pending.
    ///
    /// - Parameters:
    ///   - isShort, callback: as for `addPromptObserver`.
    ///   - whenLive: called once with the outcome, on the center's thread, if the registration was pending.
    /// - Returns: also the reason why it is not live yet; nil if it is.
    /// - Throws: ``NotifyBusError`` with the code `limitExceeded`, `failed` or `closed`, which waiting can't fix.
    package func addPromptObserverWaitingForBus(
        for name: NotifyName,
        ignoringOwnPosts: Bool,
        isShort: @escaping @Sendable () -> Bool,
        using callback: @escaping @Sendable (NotifyName) -> Void,
        whenLive: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) throws(NotifyBusError) -> (Observation, delay: NotifyBusError?) {
        let observer = makePromptObserver(of: name, ignoringOwnPosts, isShort, callback)
        let (subscription, delay) = try engine.register(observer, [.name(name)], waitsForBus: true)
        if delay != nil {
            engine.notify(of: subscription, waitsForBus: true) { [engine] result in
                engine.enqueue { if !observer.isCancelled { whenLive(result) } }
            }
        }
        return (Observation(center: self, subscription: subscription), delay)
    }

    /// Makes an observation of nothing, for callbacks that `Observation.enqueue` schedules, and starts the center's threads.
    package func observeNothing() throws(NotifyBusError) -> Observation {
        Observation(center: self, subscription: try engine.register(makeObserver(nil, false) { _ in }, []).0)
    }

    /// Whether every registration is kept if there is no bus, and completed when there is one.
    package var waitsForBus: Bool { engine.waitsForBus }

    /// Waits until every post that the bus has routed before this call has reached its observers: callbacks have run,
    /// and deliveries to queues and sequences have been enqueued.
    package func barrier(timeout: Duration? = nil) throws(NotifyBusError) {
        try engine.start()
        engine.prepareToWait()
        try engine.barrier(until: .after(timeout))
    }

    private func makeObserver(
        _ client: (any ObserverClient)?,
        _ ignoringOwnPosts: Bool,
        _ callback: @escaping @Sendable (NotifyName) -> Void
    ) -> Observer {
        Observer(
            runner: client.map { .client($0) } ?? .center(engine),
            counters: engine.counters,
            ignoresOwnPosts: ignoringOwnPosts,
            callback: callback
        )
    }

    private func makePromptObserver(
        of name: NotifyName,
        _ ignoringOwnPosts: Bool,
        _ isShort: @escaping @Sendable () -> Bool,
        _ callback: @escaping @Sendable (NotifyName) -> Void
    ) -> Observer {
        // Inside the process the poster's thread passes a name on, with a lock held that the callback may need.
        if engine.process != nil || name.staysInProcess { return makeObserver(nil, ignoringOwnPosts, callback) }
        return Observer(
            runner: .prompt(engine, isShort: isShort),
            counters: engine.counters,
            ignoresOwnPosts: ignoringOwnPosts,
            callback: callback
        )
    }

    private static func keys(for subject: NotifySubject) throws(NotifyBusError) -> [Topic.Key] {
        if subject.names.isEmpty, subject.prefixes.isEmpty {
            throw NotifyBusError(
                .invalidName,
                "There is nothing to observe: the subject has neither a name nor a prefix."
            )
        }
        return distinct(subject.names).map { .name($0) } + distinct(subject.prefixes).map { .prefix($0) }
    }

    private static func distinct<Element: Hashable>(_ all: [Element]) -> [Element] {
        // Creating a set takes a twentieth of a command's start-up time.
        if all.count < 2 { return all }
        var seen: Set<Element> = []
        return all.filter { seen.insert($0).inserted }
    }
}

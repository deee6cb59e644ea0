// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Observes a name: calls `callback` for each notification posted from now on.
    ///
    /// When this returns, the bus has confirmed the registration: every later post is heard, including those of this
    /// process. Observing a name twice calls back twice. This blocks the thread until the bus has answered;
    /// asynchronous code uses a form that does not.
    ///
    /// Callbacks run on a thread of the center, one at a time for the whole center. A callback may be slow: the bus
    /// continues to be read, and deliveries are queued, up to 4,096 of them individually, then one per name. It may use
    /// the center, and cancel its own observation.
    ///
    /// The corresponding C function is `notify_register_dispatch`.
    ///
    /// - Parameters:
    ///   - name: the name to observe.
    ///   - ignoringOwnPosts: whether to ignore what this center posts. Posts of other centers in the process are heard.
    ///   - callback: receives the name that was posted.
    /// - Returns: the observation. Keep it: it ends when you cancel it or release the last reference to it.
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be reached,
    ///   `limitExceeded` if the bus allows no more match rules, `timedOut` if it does not answer within 25 seconds,
    ///   `closed` after `close()`.
    public func addObserver(
        forName name: NotifyName,
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.name(name), ignoringOwnPosts: ignoringOwnPosts, with: callback)
    }

    /// Observes a name given as a string. See `addObserver(forName:ignoringOwnPosts:using:)`.
    ///
    /// - Throws: what that method throws, or an error with the code `invalidName` if the string is not a valid name.
    public func addObserver(
        forName name: String,
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.name(NotifyName(name)), ignoringOwnPosts: ignoringOwnPosts, with: callback)
    }

    /// Observes several names with one callback, for about the cost of one name.
    ///
    /// A name that is given twice is observed once. Otherwise see `addObserver(forName:ignoringOwnPosts:using:)`.
    public func addObserver(
        forNames names: [NotifyName],
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.names(names), ignoringOwnPosts: ignoringOwnPosts, with: callback)
    }

    /// Observes every name that begins with one of these prefixes, compared byte by byte. The empty prefix matches
    /// every name.
    ///
    /// A prefix of whole dotted parts, such as `com.example.`, is the cheapest, as the bus itself then filters the
    /// names.
    ///
    /// - Throws: ``NotifyBusError`` with the code `invalidName` if a prefix is longer than 511 bytes or contains a NUL;
    ///   otherwise the same errors as for a name.
    public func addObserver(
        forPrefixes prefixes: [String],
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.prefixes(prefixes), ignoringOwnPosts: ignoringOwnPosts, with: callback)
    }

    /// Waits until every post that the bus has routed before this call has reached its observers: callbacks have run,
    /// and deliveries to queues and sequences have been enqueued.
    package func barrier(timeout: Duration? = nil) throws(NotifyBusError) {
        try engine.start()
        engine.prepareToWait()
        try engine.barrier(until: .after(timeout))
    }

    /// What a registration observes.
    package enum Subject: Sendable {
        case name(NotifyName)
        case names([NotifyName])
        case prefixes([String])
        case mixed([NotifyName], prefixes: [String])
    }

    /// Observes as the public methods do, but waits for the bus no longer than `timeout`.
    package func addObserver(
        for subject: Subject,
        timeout: Duration?,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        let observer = Observer(runner: .center(engine), counters: engine.counters, callback: callback)
        return try register(observer, NotifyCenter.keys(for: subject), within: timeout)
    }

    /// Observes for a consumer that fetches deliveries on its own threads.
    ///
    /// - Parameter callback: what `Observer.call` runs.
    package func observe(
        _ subject: Subject,
        ignoringOwnPosts: Bool = false,
        for client: any ObserverClient,
        calling callback: @escaping @Sendable (NotifyName) -> Void = { _ in }
    ) throws(NotifyBusError) -> (Observer, Observation) {
        let observer = Observer(
            runner: .client(client),
            counters: engine.counters,
            ignoresOwnPosts: ignoringOwnPosts,
            callback: callback
        )
        return try (observer, register(observer, NotifyCenter.keys(for: subject)))
    }

    /// Observes, and if there is no bus, keeps the registration until there is one.
    ///
    /// Waits until the registration is live, or is known to be pending.
    ///
    /// - Parameters:
    ///   - callback: called on the center's thread.
    ///   - whenLive: called once with the outcome, on the center's thread, if the registration was pending.
    /// - Returns: also the reason why it is not live yet; nil if it is.
    /// - Throws: ``NotifyBusError`` with the code `limitExceeded`, `failed` or `closed`, which waiting can't fix.
    package func observeWaitingForBus(
        _ name: NotifyName,
        ignoringOwnPosts: Bool,
        using callback: @escaping @Sendable (NotifyName) -> Void,
        whenLive: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) throws(NotifyBusError) -> (Observation, delay: NotifyBusError?) {
        let observer = Observer(
            runner: .center(engine),
            counters: engine.counters,
            ignoresOwnPosts: ignoringOwnPosts,
            callback: callback
        )
        let (subscription, delay) = try engine.register(observer, [.name(name)], waitsForBus: true)
        if delay != nil { engine.notify(of: subscription, waitsForBus: true, whenLive) }
        return (Observation(center: self, subscription: subscription), delay)
    }

    /// Observes without waiting for the bus.
    ///
    /// - Parameters:
    ///   - waitsForBus: whether to keep the registration if there is no bus, and to complete it when there is one.
    ///   - whenLive: called once, on the center's thread, when every later post is heard, or when the registration has
    ///     failed. With `waitsForBus` only errors that waiting can't fix are failures. Not called after `cancel`.
    package func observe(
        _ subject: Subject,
        waitsForBus: Bool,
        using callback: @escaping @Sendable (NotifyName) -> Void,
        whenLive: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) throws(NotifyBusError) -> Observation {
        let observer = Observer(runner: .center(engine), counters: engine.counters, callback: callback)
        let keys = try NotifyCenter.keys(for: subject)
        let subscription = try engine.register(observer, keys, waitsForBus: waitsForBus, whenLive: whenLive)
        return Observation(center: self, subscription: subscription)
    }

    /// Observes with callbacks on the center's thread.
    package func observe(
        _ subject: Subject,
        ignoringOwnPosts: Bool = false,
        with callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        let observer = Observer(
            runner: .center(engine),
            counters: engine.counters,
            ignoresOwnPosts: ignoringOwnPosts,
            callback: callback
        )
        return try register(observer, NotifyCenter.keys(for: subject))
    }

    private func register(
        _ observer: Observer,
        _ keys: [Topic.Key],
        within limit: Duration? = nil
    ) throws(NotifyBusError) -> Observation {
        try Observation(center: self, subscription: engine.register(observer, keys, within: limit).0)
    }

    private static func keys(for subject: Subject) throws(NotifyBusError) -> [Topic.Key] {
        switch subject {
        case .name(let name): [.name(name)]
        case .names(let names): keys(for: names)
        case .prefixes(let prefixes): try keys(forPrefixes: prefixes)
        case .mixed(let names, let prefixes): try keys(for: names) + keys(forPrefixes: prefixes)
        }
    }

    private static func keys(for names: [NotifyName]) -> [Topic.Key] {
        // Creating a set takes a twentieth of a command's start-up time.
        if names.count == 1 { return [.name(names[0])] }
        var seen: Set<NotifyName> = []
        return names.filter { seen.insert($0).inserted }.map { .name($0) }
    }

    private static func keys(forPrefixes prefixes: [String]) throws(NotifyBusError) -> [Topic.Key] {
        var keys: [Topic.Key] = []
        for prefix in prefixes {
            // A prefix may be anything that a name may be, or empty.
            if !prefix.isEmpty { _ = try NotifyName(prefix) }
            keys.append(.prefix(NamePrefix(prefix)))
        }
        return keys
    }
}

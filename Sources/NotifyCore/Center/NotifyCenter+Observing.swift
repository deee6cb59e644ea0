// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Observes a name: calls `callback` for each notification of it that is posted from now on.
    ///
    /// When this returns, the bus has confirmed the registration: every later post is heard, whoever makes it, the
    /// posts of this process too. Observing a name twice gives two callbacks. This blocks the thread until the bus has
    /// answered; asynchronous code gets the form that does not.
    ///
    /// Callbacks run on a thread of the center, one at a time for the whole center. A callback may take its time: the
    /// bus is read meanwhile, and what arrives waits, 4,096 deliveries individually, beyond that one for each name. It may
    /// use the center, and cancel its own observation.
    ///
    /// The corresponding C function is `notify_register_dispatch`.
    ///
    /// - Parameters:
    ///   - name: the name to observe.
    ///   - ignoringOwnPosts: whether to leave out what this center posts. Posts of other centers of the process are
    ///     heard.
    ///   - callback: receives the name that was posted.
    /// - Returns: the observation. It ends when you cancel it, or when nothing refers to it any more: keep it.
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
    /// - Throws: what that method throws, and an error with the code `invalidName` if the string is not a name.
    public func addObserver(
        forName name: String,
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.name(NotifyName(name)), ignoringOwnPosts: ignoringOwnPosts, with: callback)
    }

    /// Observes several names with one callback, for about the cost of one name.
    ///
    /// A name that is given twice is observed once. See
    /// `addObserver(forName:ignoringOwnPosts:using:)` for everything else.
    public func addObserver(
        forNames names: [NotifyName],
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.names(names), ignoringOwnPosts: ignoringOwnPosts, with: callback)
    }

    /// Observes every name that begins with one of these prefixes, byte by byte. The empty prefix means every name.
    ///
    /// A prefix of whole dotted parts, `com.example.`, costs least: the bus itself then leaves out what is not meant.
    ///
    /// - Throws: ``NotifyBusError`` with the code `invalidName` if a prefix is longer than 511 bytes or contains a NUL;
    ///   otherwise as for a name.
    public func addObserver(
        forPrefixes prefixes: [String],
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.prefixes(prefixes), ignoringOwnPosts: ignoringOwnPosts, with: callback)
    }

    /// Observes a name, as `CFNotificationCenterAddObserver` does.
    ///
    /// - Parameters:
    ///   - name: the name to observe.
    ///   - suspensionBehavior: accepted and ignored, as by Darwin's notify center.
    ///   - callback: receives the name that was posted.
    public func addObserver(
        forName name: NotifyName,
        suspensionBehavior: SuspensionBehavior,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.name(name), with: callback)
    }

    /// Waits until every post that the bus has routed before this call has reached its observers: callbacks have run,
    /// and everything meant for queues and sequences waits there.
    package func barrier(timeout: Duration? = nil) throws(NotifyBusError) {
        try engine.start()
        engine.prepareToWait()
        try engine.barrier(until: .after(timeout))
    }

    /// What a registration is for.
    package enum Subject: Sendable {
        case name(NotifyName)
        case names([NotifyName])
        case prefixes([String])
    }

    /// Observes as the public methods do, and waits for the bus no longer than told.
    package func addObserver(
        for subject: Subject,
        timeout: Duration?,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        let observer = Observer(runner: .center(engine), counters: engine.counters, callback: callback)
        return try register(observer, NotifyCenter.keys(for: subject), within: timeout)
    }

    /// Observes for somebody who fetches what comes on threads of their own.
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

    /// Observes, and keeps the registration where there is no bus: it is made when there is one.
    ///
    /// Waits until the registration is live, or it is known that it has to wait.
    ///
    /// - Parameter whenLive: called once, on the center's thread, if the registration had to wait: with its outcome.
    /// - Returns: also why it is not live yet; nil if it is.
    /// - Throws: ``NotifyBusError`` with the code `limitExceeded`, `failed` or `closed`, which waiting can't mend.
    package func observeWaitingForBus(
        _ subject: Subject,
        for client: any ObserverClient,
        calling callback: @escaping @Sendable (NotifyName) -> Void,
        whenLive: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) throws(NotifyBusError) -> (Observation, delay: NotifyBusError?) {
        let observer = Observer(runner: .client(client), counters: engine.counters, callback: callback)
        let (subscription, delay) = try engine.register(observer, NotifyCenter.keys(for: subject), waitsForBus: true)
        if delay != nil { engine.notify(of: subscription, waitsForBus: true, whenLive) }
        return (Observation(center: self, subscription: subscription), delay)
    }

    /// Observes without waiting for the bus.
    ///
    /// - Parameters:
    ///   - waitsForBus: whether the registration is kept where there is no bus, and made when there is one.
    ///   - whenLive: called once, on the center's thread: when every later post is heard, or when the registration has
    ///     failed. With `waitsForBus` only what waiting can't mend is a failure. Not called after `cancel`.
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
        }
    }

    private static func keys(for names: [NotifyName]) -> [Topic.Key] {
        // A set of names takes a twentieth of the start of a command.
        if names.count == 1 { return [.name(names[0])] }
        var seen: Set<NotifyName> = []
        return names.filter { seen.insert($0).inserted }.map { .name($0) }
    }

    private static func keys(forPrefixes prefixes: [String]) throws(NotifyBusError) -> [Topic.Key] {
        var keys: [Topic.Key] = []
        for prefix in prefixes {
            // What may begin a name is what may be one, and nothing at all.
            if !prefix.isEmpty { _ = try NotifyName(prefix) }
            keys.append(.prefix(NamePrefix(prefix)))
        }
        return keys
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension NotifyCenter {
    /// Observes names: calls `callback` for each notification posted from now on. Blocks the thread until the bus has
    /// confirmed the registration.
    ///
    /// When this returns, every later post is heard, including those of this process. Observing a name twice calls back
    /// twice.
    ///
    /// Callbacks run on a thread of the center, one at a time for the whole center. A callback may be slow: the bus
    /// continues to be read, and deliveries are queued, up to 4,096 of them individually, then one per name. It may use
    /// the center, and cancel its own observation.
    ///
    /// The corresponding C function is `notify_register_dispatch`.
    ///
    /// - Parameters:
    ///   - name: the name to observe.
    ///   - others: more names. Observing them together costs about as much as observing one.
    ///   - ignoringOwnPosts: whether to ignore what this center posts. Posts of other centers in the process are heard.
    ///   - timeout: how long the bus may take to confirm the registration.
    ///   - callback: receives the name that was posted.
    /// - Returns: the observation. Keep it: it ends when you cancel it or release the last reference to it.
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be reached,
    ///   `limitExceeded` if the bus allows no more match rules, `timedOut` if it does not answer in time, `forked`, or
    ///   `closed`.
    @available(*, noasync, message: "It blocks the thread; use 'await addObserver(for:using:)'.")
    public func addObserver(
        for name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false,
        timeout: Duration,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.names([name] + others), ignoringOwnPosts, nil, within: timeout, callback)
    }

    /// Observes everything that a subject includes. Blocks the thread until the bus has confirmed the registration.
    ///
    /// Otherwise like `addObserver(for:_:ignoringOwnPosts:timeout:using:)`.
    ///
    /// - Throws: also ``NotifyBusError`` with the code `invalidName` if the subject includes nothing.
    @available(*, noasync, message: "It blocks the thread; use 'await addObserver(matching:using:)'.")
    public func addObserver(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        timeout: Duration,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(subject, ignoringOwnPosts, nil, within: timeout, callback)
    }

    /// Observes names: calls `callback` for each notification posted from now on. Suspends the task until the bus has
    /// confirmed the registration.
    ///
    /// When this returns, every later post is heard, including those of this process. Observing a name twice calls back
    /// twice.
    ///
    /// Callbacks run on a thread of the center, one at a time for the whole center. A callback may be slow: the bus
    /// continues to be read, and deliveries are queued, up to 4,096 of them individually, then one per name. It may use
    /// the center, and cancel its own observation.
    ///
    /// The corresponding C function is `notify_register_dispatch`.
    ///
    /// - Parameters:
    ///   - name: the name to observe.
    ///   - others: more names. Observing them together costs about as much as observing one.
    ///   - ignoringOwnPosts: whether to ignore what this center posts. Posts of other centers in the process are heard.
    ///   - callback: receives the name that was posted.
    /// - Returns: the observation. Keep it: it ends when you cancel it or release the last reference to it.
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be reached,
    ///   `limitExceeded` if the bus allows no more match rules, `forked`, `closed`, or `cancelled` if the task is cancelled
    ///   before the bus has answered. Nothing is registered then, but a callback that has just begun may still be running.
    public func addObserver(
        for name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.names([name] + others), ignoringOwnPosts, nil, callback)
    }

    /// Observes everything that a subject includes, and suspends the task until the bus has confirmed the registration.
    ///
    /// Otherwise like `addObserver(for:_:ignoringOwnPosts:using:)`.
    ///
    /// - Throws: also ``NotifyBusError`` with the code `invalidName` if the subject includes nothing.
    public func addObserver(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(subject, ignoringOwnPosts, nil, callback)
    }

    /// Observes, and blocks the thread until the registration is live.
    ///
    /// - Parameter client: fetches deliveries on its own threads; nil for callbacks on the center's thread.
    func observe(
        _ subject: NotifySubject,
        _ ignoringOwnPosts: Bool,
        _ client: (any ObserverClient)?,
        within limit: Duration,
        _ callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try rethrowing { () throws(CoreError) in
            let observation = try core.observe(subject.core, ignoringOwnPosts, client, within: limit) { name in
                callback(NotifyName(name))
            }
            return Observation(observation)
        }
    }

    /// Observes, and suspends the task until the registration is live, or is known to be kept until there is a bus.
    ///
    /// - Parameter client: fetches the deliveries; nil for callbacks on the center's thread.
    func observe(
        _ subject: NotifySubject,
        _ ignoringOwnPosts: Bool,
        _ client: (any ObserverClient)?,
        _ callback: @escaping @Sendable (NotifyName) -> Void = { _ in }
    ) async throws(NotifyBusError) -> Observation {
        let live = Completion<Void>()
        let observation = try rethrowing { () throws(CoreError) in
            try core.startObserving(
                subject.core,
                ignoringOwnPosts: ignoringOwnPosts,
                waitsForBus: core.waitsForBus,
                acceptsDelay: true,
                client: client,
                using: { callback(NotifyName($0)) },
                whenLive: { live.complete($0) }
            )
        }
        do throws(NotifyBusError) {
            try await live.value()
        } catch {
            observation.cancel()
            throw error
        }
        return Observation(observation)
    }
}

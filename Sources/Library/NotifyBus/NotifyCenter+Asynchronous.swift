// SPDX-License-Identifier: Apache-2.0

// The calls that may wait. None needs a thread while it waits, and none has a timeout: cancel the task. Those of the same
// name that have one, in NotifyCore, block the thread.

extension NotifyCenter {
    /// Connects to the bus, unless the center is connected, and suspends the task until the bus has accepted that.
    ///
    /// Nothing needs this: posting and observing connect by themselves. It is for programs that want to know at once
    /// whether there is a bus.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be reached, `timedOut` if it
    ///   does not answer within 10 seconds, `cancelled`, `forked`, `closed`, or `failed` if the system is out of threads
    ///   or descriptors.
    public func connect() async throws(NotifyBusError) {
        let opening = Completion<Void>()
        try connect { opening.complete($0) }
        try await opening.value()
    }

    /// Suspends the task until every earlier post is written to the bus's socket.
    ///
    /// To have every single post delivered, flush at least once in 4,096 posts: then none is coalesced.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus is away, `closed`, or `cancelled`.
    ///   What was posted goes on waiting.
    public func flush() async throws(NotifyBusError) {
        let written = Completion<Void>()
        flush { written.complete($0) }
        try await written.value()
    }

    /// Suspends the task until the bus has accepted every earlier post and routed it to the observers' connections.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus is away, `closed`, or `cancelled`.
    public func synchronize() async throws(NotifyBusError) {
        try await connect()
        let routed = Completion<Void>()
        try synchronize { routed.complete($0) }
        try await routed.value()
    }

    /// Closes the center: its observers hear nothing more, and posting throws an error with the code `closed`. Suspends the
    /// task until no callback is running.
    ///
    /// Posts still waiting to be written are lost and counted; call `flush()` first if they matter. Do not wait for this
    /// inside a callback by other means, such as a semaphore. Cancelling the task does not cut this short.
    public func close() async {
        let closed = Completion<Void>()
        close { closed.complete(.success(())) }
        try? await closed.valueDespiteCancellation()
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
        let observation = try startObserving(
            subject,
            ignoringOwnPosts: ignoringOwnPosts,
            waitsForBus: waitsForBus,
            acceptsDelay: true,
            client: client,
            using: callback,
            whenLive: { live.complete($0) }
        )
        do throws(NotifyBusError) {
            try await live.value()
        } catch {
            observation.cancel()
            throw error
        }
        return observation
    }
}

extension NotifyCenter.Observation {
    /// Ends the observation, and suspends the task while its callback is running in another thread: when this has returned,
    /// its callback is not running and never will again.
    ///
    /// Do not wait for this inside a callback by other means, such as a semaphore. Cancelling the task does not cut this
    /// short.
    public func cancelAndWait() async {
        let idle = Completion<Void>()
        cancel { idle.complete(.success(())) }
        try? await idle.valueDespiteCancellation()
    }
}

// SPDX-License-Identifier: Apache-2.0

// The asynchronous form of each call of a center that may wait, which the compiler selects in asynchronous code. None
// needs a thread while it waits, and none has a timeout: cancel the task.

extension NotifyCenter {
    /// Posts a notification. The first post suspends the task until the bus has accepted the connection.
    ///
    /// Otherwise like the form that blocks. The center's threads, which a center that only posts does not have
    /// otherwise, wait for the bus.
    ///
    /// - Throws: what the form that blocks throws, or an error with the code `cancelled` if the task is cancelled before
    ///   the bus has accepted the connection. Nothing was posted then.
    public func post(_ name: NotifyName) async throws(NotifyBusError) {
        if !canPostAtOnce(name) {
            try checkPermission(toPost: name)
            try await openForPosting()
        }
        // It doesn't wait now; the closure makes it the form that blocks.
        let post = { () throws(NotifyBusError) in try self.post(name) }
        try post()
    }

    private func openForPosting() async throws(NotifyBusError) {
        let opening = Completion<Void>()
        try openForPosting { opening.complete($0) }
        try await opening.value()
    }

    /// Suspends the task until every earlier post is written to the bus's socket.
    ///
    /// - Throws: ``NotifyBusError`` with the code `disconnected` if the bus is away, `closed`, or `cancelled`.
    public func flush() async throws(NotifyBusError) {
        let written = Completion<Void>()
        flush { written.complete($0) }
        try await written.value()
    }

    /// Suspends the task until the bus has accepted every earlier post and routed it to the observers' connections.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus is away, `closed`, or `cancelled`.
    public func synchronize() async throws(NotifyBusError) {
        try await openForPosting()
        let routed = Completion<Void>()
        try synchronize { routed.complete($0) }
        try await routed.value()
    }

    /// Closes the center, and suspends the task until no callback is running.
    ///
    /// Cancelling the task does not cut this short.
    public func close() async {
        let closed = Completion<Void>()
        close { closed.complete(.success(())) }
        try? await closed.valueDespiteCancellation()
    }

    /// Observes, and suspends the task until the bus has confirmed the registration.
    ///
    /// Callbacks run on a thread of the center, one at a time for the whole center.
    ///
    /// - Throws: what the form that blocks throws, except `timedOut`; an error with the code `cancelled` if the task is
    ///   cancelled before the bus has answered. Nothing is registered then, but a callback that has just begun may still
    ///   be running.
    public func addObserver(
        for subject: NotifySubject,
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
            observation.cancelWithoutWaiting()
            throw error
        }
        return observation
    }
}

extension NotifyCenter.Observation {
    /// Ends the observation, and suspends the task while its callback is running in another thread.
    ///
    /// Do not wait for this inside a callback by other means, such as a semaphore. Cancelling the task does not cut this
    /// short.
    public func cancel() async {
        let idle = Completion<Void>()
        cancel { idle.complete(.success(())) }
        try? await idle.valueDespiteCancellation()
    }
}

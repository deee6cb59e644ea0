// SPDX-License-Identifier: Apache-2.0

// The asynchronous form of each call of a center that may wait, which the compiler selects in asynchronous code. See
// the blocking form for what each does, throws and delivers.

extension NotifyCenter {
    /// Posts a notification. The first post suspends the task until the bus has accepted the connection.
    public func post(_ name: NotifyName) async throws(NotifyBusError) {
        let post: @Sendable () throws(NotifyBusError) -> Void = { () throws(NotifyBusError) in try self.post(name) }
        if canPostAtOnce(name) { try post() } else { try await Waiting.perform(post) }
    }

    /// Posts a notification by a name given as a string.
    ///
    /// - Throws: an error with the code `invalidName` if the string is not a valid name.
    public func post(_ name: String) async throws(NotifyBusError) {
        try await post(NotifyName(name))
    }

    /// Suspends the task until every earlier post is written to the bus's socket.
    public func flush(timeout: Duration? = nil) async throws(NotifyBusError) {
        if isFlushed { return }
        try await Waiting.perform { () throws(NotifyBusError) in try self.flush(timeout: timeout) }
    }

    /// Suspends the task until the bus has accepted every earlier post and routed it to the observers' connections.
    public func synchronize(timeout: Duration? = nil) async throws(NotifyBusError) {
        try await Waiting.perform { () throws(NotifyBusError) in try self.synchronize(timeout: timeout) }
    }

    /// Closes the center, and suspends the task until no callback is running.
    public func close() async {
        await Waiting.perform { () throws(Never) in self.close() }
    }

    /// Observes a name, and suspends the task until the bus has confirmed the registration.
    ///
    /// Cancelling the task does not cut this short.
    public func addObserver(
        forName name: NotifyName,
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.name(name), ignoringOwnPosts, callback)
    }

    /// Observes a name given as a string, and suspends the task until the bus has confirmed the registration.
    ///
    /// Cancelling the task does not cut this short.
    public func addObserver(
        forName name: String,
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.name(NotifyName(name)), ignoringOwnPosts, callback)
    }

    /// Observes several names, and suspends the task until the bus has confirmed the registration.
    ///
    /// Cancelling the task does not cut this short.
    public func addObserver(
        forNames names: [NotifyName],
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.names(names), ignoringOwnPosts, callback)
    }

    /// Observes every name that begins with one of these prefixes, and suspends the task until the bus has confirmed
    /// the registration.
    ///
    /// Cancelling the task does not cut this short.
    public func addObserver(
        forPrefixes prefixes: [String],
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.prefixes(prefixes), ignoringOwnPosts, callback)
    }

    private func observe(
        _ subject: Subject,
        _ ignoringOwnPosts: Bool,
        _ callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await Waiting.perform { () throws(NotifyBusError) in
            try self.observe(subject, ignoringOwnPosts: ignoringOwnPosts, with: callback)
        }
    }
}

extension NotifyCenter.Observation {
    /// Ends the observation, and suspends the task while its callback is running in another thread.
    ///
    /// Cancelling the task does not cut this short.
    public func cancel() async {
        if cancelWithoutWaiting() { await Waiting.perform { () throws(Never) in self.cancel() } }
    }
}

// SPDX-License-Identifier: Apache-2.0

// Each call of a center that may wait, for asynchronous code, which gets these without asking. What each does, throws and
// delivers is told at the form that blocks.

extension NotifyCenter {
    /// Posts a notification, and suspends the task until the bus has let the program in, which only the first post does.
    public func post(_ name: NotifyName) async throws(NotifyBusError) {
        let post: @Sendable () throws(NotifyBusError) -> Void = { () throws(NotifyBusError) in try self.post(name) }
        if canPostAtOnce(name) { try post() } else { try await Waiting.perform(post) }
    }

    /// Posts a notification by a name given as a string.
    ///
    /// - Throws: an error with the code `invalidName` if the string is not a name.
    public func post(_ name: String) async throws(NotifyBusError) {
        try await post(NotifyName(name))
    }

    /// Suspends the task until every earlier post is written to the bus's socket.
    public func flush(timeout: Duration? = nil) async throws(NotifyBusError) {
        if isFlushed { return }
        try await Waiting.perform { () throws(NotifyBusError) in try self.flush(timeout: timeout) }
    }

    /// Suspends the task until the bus has taken every earlier post and passed it on to the observers' connections.
    public func synchronize(timeout: Duration? = nil) async throws(NotifyBusError) {
        try await Waiting.perform { () throws(NotifyBusError) in try self.synchronize(timeout: timeout) }
    }

    /// Closes the center, and suspends the task until no callback runs any more.
    public func close() async {
        await Waiting.perform { () throws(Never) in self.close() }
    }

    /// Observes a name, and suspends the task until the bus has confirmed it.
    ///
    /// It does not end early when the task is cancelled.
    public func addObserver(
        forName name: NotifyName,
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.name(name), ignoringOwnPosts, callback)
    }

    /// Observes a name given as a string, and suspends the task until the bus has confirmed it.
    ///
    /// It does not end early when the task is cancelled.
    public func addObserver(
        forName name: String,
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.name(NotifyName(name)), ignoringOwnPosts, callback)
    }

    /// Observes several names, and suspends the task until the bus has confirmed it.
    ///
    /// It does not end early when the task is cancelled.
    public func addObserver(
        forNames names: [NotifyName],
        ignoringOwnPosts: Bool = false,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.names(names), ignoringOwnPosts, callback)
    }

    /// Observes every name that begins with one of these prefixes, and suspends the task until the bus has confirmed it.
    ///
    /// It does not end early when the task is cancelled.
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
    /// Ends the observation, and suspends the task while its callback runs in another thread.
    ///
    /// It does not end early when the task is cancelled.
    public func cancel() async {
        if cancelWithoutWaiting() { await Waiting.perform { () throws(Never) in self.cancel() } }
    }
}

// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// The notifications of a name, as an asynchronous sequence.
    ///
    /// ```swift
    /// for await name in try await center.notifications(named: "com.example.backup.done") {
    ///     print("heard", name)
    /// }
    /// ```
    ///
    /// When this returns, the registration is live: the sequence contains every later post, including those made before
    /// the first iteration. Up to 4,096 notifications are queued individually until they are fetched, then one per
    /// name. The sequence ends when the task is cancelled or the center is closed; the registration ends with the
    /// sequence, or when the last reference to the sequence and its iterators is released.
    ///
    /// - Throws: what `addObserver(forName:ignoringOwnPosts:using:)` throws.
    public func notifications(
        named name: NotifyName,
        ignoringOwnPosts: Bool = false
    ) throws(NotifyBusError) -> Notifications {
        try Notifications(center: self, .name(name), ignoringOwnPosts)
    }

    /// The notifications of a name given as a string.
    ///
    /// - Throws: what `notifications(named:ignoringOwnPosts:)` throws, or an error with the code `invalidName` if the
    ///   string is not a valid name.
    public func notifications(
        named name: String,
        ignoringOwnPosts: Bool = false
    ) throws(NotifyBusError) -> Notifications {
        try Notifications(center: self, .name(NotifyName(name)), ignoringOwnPosts)
    }

    /// The notifications of several names.
    ///
    /// - Throws: what `notifications(named:ignoringOwnPosts:)` throws.
    public func notifications(
        named names: [NotifyName],
        ignoringOwnPosts: Bool = false
    ) throws(NotifyBusError) -> Notifications {
        try Notifications(center: self, .names(names), ignoringOwnPosts)
    }

    /// The notifications of all names that begin with one of these prefixes.
    ///
    /// - Throws: what `addObserver(forPrefixes:ignoringOwnPosts:using:)` throws.
    public func notifications(
        withPrefixes prefixes: [String],
        ignoringOwnPosts: Bool = false
    ) throws(NotifyBusError) -> Notifications {
        try Notifications(center: self, .prefixes(prefixes), ignoringOwnPosts)
    }

    /// The notifications of a name. Suspends the task until the bus has confirmed the registration.
    public func notifications(
        named name: NotifyName,
        ignoringOwnPosts: Bool = false
    ) async throws(NotifyBusError) -> Notifications {
        try await sequence(of: .name(name), ignoringOwnPosts)
    }

    /// The notifications of a name given as a string. Suspends the task until the bus has confirmed the registration.
    public func notifications(
        named name: String,
        ignoringOwnPosts: Bool = false
    ) async throws(NotifyBusError) -> Notifications {
        try await sequence(of: .name(NotifyName(name)), ignoringOwnPosts)
    }

    /// The notifications of several names. Suspends the task until the bus has confirmed the registration.
    public func notifications(
        named names: [NotifyName],
        ignoringOwnPosts: Bool = false
    ) async throws(NotifyBusError) -> Notifications {
        try await sequence(of: .names(names), ignoringOwnPosts)
    }

    /// The notifications of all names that begin with one of these prefixes. Suspends the task until the bus has
    /// confirmed the registration.
    public func notifications(
        withPrefixes prefixes: [String],
        ignoringOwnPosts: Bool = false
    ) async throws(NotifyBusError) -> Notifications {
        try await sequence(of: .prefixes(prefixes), ignoringOwnPosts)
    }

    private func sequence(
        of subject: Subject,
        _ ignoringOwnPosts: Bool
    ) async throws(NotifyBusError) -> Notifications {
        try await Waiting.perform { () throws(NotifyBusError) in
            try Notifications(center: self, subject, ignoringOwnPosts)
        }
    }

    /// An asynchronous sequence of posted names.
    ///
    /// Created by `notifications(named:ignoringOwnPosts:)`.
    ///
    /// Several tasks may iterate at once; each notification then goes to only one of them.
    public struct Notifications: AsyncSequence, Sendable {
        private let feed: NotificationFeed

        fileprivate init(
            center: NotifyCenter,
            _ subject: NotifyCenter.Subject,
            _ ignoringOwnPosts: Bool
        ) throws(NotifyBusError) {
            feed = try NotificationFeed(center: center, subject, ignoringOwnPosts)
        }

        /// Creates an iterator over the notifications.
        public func makeAsyncIterator() -> Iterator {
            Iterator(feed: feed)
        }

        /// Ends the sequence: once this has returned, no iterator produces a notification.
        public func cancel() {
            feed.cancel()
        }

        /// Waits for notifications.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let feed: NotificationFeed

            /// The next notification; nil when the task is cancelled or the center is closed.
            public mutating func next() async -> NotifyName? {
                await feed.next()
            }

            /// The next notification; nil when the task is cancelled or the center is closed.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> NotifyName? {
                await feed.next()
            }
        }
    }
}

/// Connects an observer to the tasks that wait for its notifications.
private final class NotificationFeed: Sendable {
    private let client = FeedClient()
    private let observer: Observer
    private let observation: NotifyCenter.Observation

    init(
        center: NotifyCenter,
        _ subject: NotifyCenter.Subject,
        _ ignoringOwnPosts: Bool
    ) throws(NotifyBusError) {
        (observer, observation) = try center.observe(subject, ignoringOwnPosts: ignoringOwnPosts, for: client)
    }

    func next() async -> NotifyName? {
        await client.next(from: observer)
    }

    func cancel() {
        observation.cancel()
    }
}

/// The wait queue of tasks. The observer refers to it, and must not keep the feed alive.
private final class FeedClient: ObserverClient {
    private struct Waiters {
        var tasks: [(id: Int, continuation: UnsafeContinuation<NotifyName?, Never>)] = []
        var lastID = 0
        var isEnded = false
    }

    private let waiters = Monitor(Waiters())

    func next(from observer: Observer) async -> NotifyName? {
        let id = waiters.withLock { waiters in
            waiters.lastID += 1
            return waiters.lastID
        }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer: NotifyName?? = waiters.withLock { waiters in
                    if waiters.isEnded || Task.isCancelled { return .some(nil) }
                    if let name = observer.takeNextToHandOver() { return .some(name) }
                    waiters.tasks.append((id, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let continuation = waiters.withLock { waiters in
                waiters.tasks.firstIndex { $0.id == id }.map { waiters.tasks.remove(at: $0).continuation }
            }
            continuation?.resume(returning: nil)
        }
    }

    /// Hands what has arrived to waiting tasks.
    func wake(for observer: Observer) {
        while true {
            let served: (UnsafeContinuation<NotifyName?, Never>, NotifyName)? = waiters.withLock { waiters in
                guard !waiters.tasks.isEmpty, let name = observer.takeNextToHandOver() else { return nil }
                return (waiters.tasks.removeFirst().continuation, name)
            }
            guard let (continuation, name) = served else { return }
            continuation.resume(returning: name)
        }
    }

    func end() {
        let tasks = waiters.withLock { waiters in
            waiters.isEnded = true
            defer { waiters.tasks = [] }
            return waiters.tasks
        }
        for task in tasks { task.continuation.resume(returning: nil) }
    }
}

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
    /// When this returns, the registration is live: every later post is in the sequence, also those made before the
    /// first iteration. What is not fetched yet waits: 4,096 notifications are queued individually, beyond that one for
    /// each name.
    /// The sequence ends when the task is cancelled or the center is closed; the registration ends with it, or when
    /// nothing refers to the sequence and its iterators any more.
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
    /// - Throws: what `notifications(named:ignoringOwnPosts:)` throws, and an error with the code
    ///   `invalidName` if the string is not a name.
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

    /// The notifications of all names that begin with one of these prefixes. Suspends the task until the bus has confirmed the registration.
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

    /// An asynchronous sequence of the names that are posted.
    ///
    /// Made by `notifications(named:ignoringOwnPosts:)`.
    ///
    /// Several tasks may iterate at once; each notification then goes to one of them.
    public struct Notifications: AsyncSequence, Sendable {
        private let feed: NotificationFeed

        fileprivate init(
            center: NotifyCenter,
            _ subject: NotifyCenter.Subject,
            _ ignoringOwnPosts: Bool
        ) throws(NotifyBusError) {
            feed = try NotificationFeed(center: center, subject, ignoringOwnPosts)
        }

        /// Makes an iterator over the notifications.
        public func makeAsyncIterator() -> Iterator {
            Iterator(feed: feed)
        }

        /// Ends the sequence: no iterator gives a notification after this has returned.
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

/// What stands between an observer and the tasks that wait for its notifications.
private final class NotificationFeed: Sendable {
    private let door = FeedDoor()
    private let observer: Observer
    private let observation: NotifyCenter.Observation

    init(
        center: NotifyCenter,
        _ subject: NotifyCenter.Subject,
        _ ignoringOwnPosts: Bool
    ) throws(NotifyBusError) {
        (observer, observation) = try center.observe(subject, ignoringOwnPosts: ignoringOwnPosts, for: door)
    }

    func next() async -> NotifyName? {
        await door.next(from: observer)
    }

    func cancel() {
        observation.cancel()
    }
}

/// Where tasks wait. The observer knows it, and must not keep the feed alive.
private final class FeedDoor: ObserverClient {
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

    /// Gives waiting tasks what has come.
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

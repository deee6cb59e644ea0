// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import Synchronization

extension NotifyCenter {
    /// Notifications as an asynchronous sequence. Suspends the task until the bus has confirmed the registration.
    ///
    /// ```swift
    /// for await name in try await center.notifications(for: "com.example.backup.done") {
    ///     print("heard", name)
    /// }
    /// ```
    ///
    /// When this returns, the registration is live: the sequence contains every later post, including those made before
    /// the first iteration. Up to 4,096 notifications are queued individually until they are fetched, then one per
    /// name.
    ///
    /// - Parameters:
    ///   - name: the name to observe.
    ///   - others: more names. Observing them together costs about as much as observing one.
    ///   - ignoringOwnPosts: whether to ignore what this center posts.
    /// - Throws: what `addObserver(for:_:ignoringOwnPosts:using:)` throws.
    public func notifications(
        for name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false
    ) async throws(NotifyBusError) -> Notifications {
        try await notifications(matching: .names([name] + others), ignoringOwnPosts: ignoringOwnPosts)
    }

    /// Notifications of everything that a subject includes, as an asynchronous sequence. Suspends the task until the bus has
    /// confirmed the registration.
    ///
    /// Otherwise like `notifications(for:_:ignoringOwnPosts:)`.
    ///
    /// - Throws: what `addObserver(matching:ignoringOwnPosts:using:)` throws.
    public func notifications(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false
    ) async throws(NotifyBusError) -> Notifications {
        let client = SequenceClient()
        let observation = try await observe(subject, ignoringOwnPosts, client)
        return Notifications(feed: NotificationFeed(client: client, observation: observation))
    }

    /// Observes names as long as a closure runs, which iterates over the notifications.
    ///
    /// ```swift
    /// try await center.withNotifications(for: "com.example.config.changed") { changes in
    ///     try await load()  // From here on no change is missed.
    ///     for await _ in changes { try await load() }
    /// }
    /// ```
    ///
    /// The registration is live when the closure begins, and has ended when this returns. If the task is cancelled before
    /// it is live, as by a graceful shutdown, this returns without an error and the closure does not run.
    ///
    /// - Parameters:
    ///   - name: the name to observe.
    ///   - others: more names. Observing them together costs about as much as observing one.
    ///   - ignoringOwnPosts: whether to ignore what this center posts.
    ///   - body: runs in this task, and in its actor.
    /// - Throws: what `addObserver(for:_:ignoringOwnPosts:using:)` throws, except `cancelled`; what the closure throws.
    public func withNotifications(
        for name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false,
        _ body: (Notifications) async throws -> Void
    ) async throws {
        try await withNotifications(matching: .names([name] + others), ignoringOwnPosts: ignoringOwnPosts, body)
    }

    /// Observes everything that a subject includes as long as a closure runs, which iterates over the notifications.
    ///
    /// Otherwise like `withNotifications(for:_:ignoringOwnPosts:_:)`.
    public func withNotifications(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        _ body: (Notifications) async throws -> Void
    ) async throws {
        let notifications: Notifications
        do throws(NotifyBusError) {
            notifications = try await self.notifications(matching: subject, ignoringOwnPosts: ignoringOwnPosts)
        } catch {
            if error.code == .cancelled { return }
            throw error
        }
        defer { notifications.cancel() }
        try await body(notifications)
    }

    /// Posted names, as an asynchronous sequence for one consumer.
    ///
    /// Created by `notifications(for:_:ignoringOwnPosts:)`. Call that again for another consumer: one task iterates at a
    /// time, and a second one that waits for the next element ends the program with a message. A task can go on where
    /// another has stopped.
    ///
    /// The loop ends when its task is cancelled, the sequence is cancelled, or the center is closed. The registration ends
    /// with the sequence, or when the last reference to the sequence and its iterator is released.
    public struct Notifications: AsyncSequence, Sendable {
        fileprivate let feed: NotificationFeed

        /// Creates the iterator over the notifications.
        public func makeAsyncIterator() -> Iterator {
            Iterator(feed: feed)
        }

        /// Ends the sequence: a task that asks the iterator after this has returned gets no notification. A task that
        /// was already waiting for one may still get it.
        public func cancel() {
            feed.cancel()
        }

        /// Waits for notifications.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let feed: NotificationFeed

            /// The next notification; nil when the task or the sequence is cancelled, or the center is closed.
            public mutating func next() async -> NotifyName? {
                await feed.next()
            }

            /// The next notification; nil when the task or the sequence is cancelled, or the center is closed.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> NotifyName? {
                await feed.next()
            }
        }
    }
}

@available(*, unavailable)
extension NotifyCenter.Notifications.Iterator: Sendable {}

/// Ends the registration when the sequence and its iterator are gone.
private final class NotificationFeed: Sendable {
    private let client: SequenceClient
    private let observation: NotifyCenter.Observation

    init(client: SequenceClient, observation: NotifyCenter.Observation) {
        self.client = client
        self.observation = observation
    }

    func next() async -> NotifyName? {
        await client.next(from: observation.core.observer).map { NotifyName($0) }
    }

    func cancel() {
        observation.cancel()
    }
}

/// Hands what an observer hears to the task that waits for it.
private final class SequenceClient: ObserverClient {
    private struct State {
        var waiting: UnsafeContinuation<CoreName?, Never>?
        var isEnded = false
    }

    private let state = Mutex(State())

    func next(from observer: Observer) async -> CoreName? {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer: CoreName?? = state.withLock { state in
                    if state.isEnded || Task.isCancelled { return .some(nil) }
                    precondition(
                        state.waiting == nil,
                        "Two tasks wait for the next notification of one sequence; each needs a sequence of its own."
                    )
                    if let name = observer.takeNextToHandOver() { return .some(name) }
                    state.waiting = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            takeWaiting()?.resume(returning: nil)
        }
    }

    func wake(for observer: Observer) {
        let served: (UnsafeContinuation<CoreName?, Never>, CoreName)? = state.withLock { state in
            guard let continuation = state.waiting, let name = observer.takeNextToHandOver() else { return nil }
            state.waiting = nil
            return (continuation, name)
        }
        if let (continuation, name) = served { continuation.resume(returning: name) }
    }

    func end() {
        state.withLock { $0.isEnded = true }
        takeWaiting()?.resume(returning: nil)
    }

    private func takeWaiting() -> UnsafeContinuation<CoreName?, Never>? {
        state.withLock { state in
            defer { state.waiting = nil }
            return state.waiting
        }
    }
}

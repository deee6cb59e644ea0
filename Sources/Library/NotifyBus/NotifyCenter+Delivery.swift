// SPDX-License-Identifier: Apache-2.0

public import Dispatch
import NotifyCore

// Observing with callbacks on a dispatch queue, and on the main actor.

extension NotifyCenter {
    /// Observes names with callbacks on a dispatch queue, and suspends the task until the bus has confirmed the registration.
    ///
    /// Like `addObserver(for:_:ignoringOwnPosts:using:)`, but callbacks run on `queue`: one at a time and in order, even on a
    /// concurrent queue. Up to 4,096 deliveries are queued individually, then one per name.
    ///
    /// The corresponding C function is `notify_register_dispatch`.
    public func addObserver(
        for name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.names([name] + others), ignoringOwnPosts, QueueClient(queue: queue), callback)
    }

    /// Observes everything that a subject includes with callbacks on a dispatch queue, and suspends the task until the bus
    /// has confirmed the registration.
    ///
    /// Otherwise like `addObserver(for:_:ignoringOwnPosts:queue:using:)`.
    public func addObserver(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(subject, ignoringOwnPosts, QueueClient(queue: queue), callback)
    }

    /// Observes names with callbacks on a dispatch queue. Blocks the thread until the bus has confirmed the registration.
    ///
    /// Like `addObserver(for:_:ignoringOwnPosts:timeout:using:)`, but callbacks run on `queue`: one at a time and in order,
    /// even on a concurrent queue. Up to 4,096 deliveries are queued individually, then one per name.
    @available(*, noasync, message: "It blocks the thread; use 'await addObserver(for:queue:using:)'.")
    public func addObserver(
        for name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        timeout: Duration,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        let client = QueueClient(queue: queue)
        return try observe(.names([name] + others), ignoringOwnPosts, client, within: timeout, callback)
    }

    /// Observes everything that a subject includes with callbacks on a dispatch queue. Blocks the thread until the bus has
    /// confirmed the registration.
    ///
    /// Otherwise like `addObserver(for:_:ignoringOwnPosts:queue:timeout:using:)`.
    @available(*, noasync, message: "It blocks the thread; use 'await addObserver(matching:queue:using:)'.")
    public func addObserver(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        timeout: Duration,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(subject, ignoringOwnPosts, QueueClient(queue: queue), within: timeout, callback)
    }

    /// Observes names with callbacks on the main actor, which can use what belongs to it without `await`. Suspends the task
    /// until the bus has confirmed the registration.
    ///
    /// ```swift
    /// observation = try await center.addObserver(for: "com.example.title", on: MainActor.shared) { [weak self] _ in
    ///     self?.reload()
    /// }
    /// ```
    ///
    /// Callbacks run one at a time and in order. Up to 4,096 deliveries are queued individually, then one per name. The
    /// program must run the main actor: in an asynchronous `main`, with `dispatchMain()`, or with a run loop. Otherwise
    /// like `addObserver(for:_:ignoringOwnPosts:using:)`.
    ///
    /// This is for the main actor only. In another actor, iterate over `notifications(for:_:ignoringOwnPosts:)` in a task:
    ///
    /// ```swift
    /// actor Cache {
    ///     func follow(_ center: NotifyCenter) async throws {
    ///         for await _ in try await center.notifications(for: "com.example.config.changed") { reload() }
    ///     }
    /// }
    /// ```
    public func addObserver(
        for name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false,
        on actor: MainActor,
        using callback: @escaping @MainActor (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await addObserver(
            matching: .names([name] + others),
            ignoringOwnPosts: ignoringOwnPosts,
            on: actor,
            using: callback
        )
    }

    /// Observes everything that a subject includes with callbacks on the main actor, and suspends the task until the bus
    /// has confirmed the registration.
    ///
    /// Otherwise like `addObserver(for:_:ignoringOwnPosts:on:using:)`.
    public func addObserver(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        on actor: MainActor,
        using callback: @escaping @MainActor (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(subject, ignoringOwnPosts, MainActorClient()) { name in
            MainActor.assumeIsolated { callback(name) }
        }
    }
}

/// Runs an observer's callbacks on a dispatch queue, one block at a time.
private struct QueueClient: ObserverClient {
    let queue: DispatchQueue

    func wake(for observer: Observer) {
        queue.async { if !observer.takeTurn() { wake(for: observer) } }
    }

    func end() {}
}

/// Runs an observer's callbacks on the main actor, in one task at a time.
private struct MainActorClient: ObserverClient {
    func wake(for observer: Observer) {
        Task { @MainActor in if !observer.takeTurn() { wake(for: observer) } }
    }

    func end() {}
}

extension Observer {
    /// How many deliveries are made before others get their turn.
    private static let turn = 64

    /// Runs callbacks for what is queued.
    ///
    /// - Returns: whether that was all.
    fileprivate func takeTurn() -> Bool {
        for _ in 0..<Observer.turn {
            guard let name = takeNext() else { return true }
            call(name)
        }
        return false
    }
}

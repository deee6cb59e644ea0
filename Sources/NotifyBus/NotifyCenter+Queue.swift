// SPDX-License-Identifier: Apache-2.0

public import Dispatch

extension NotifyCenter {
    /// Observes a name, with callbacks on a dispatch queue.
    ///
    /// Like `addObserver(forName:ignoringOwnPosts:using:)`, but callbacks run on `queue`: one at a time and in order,
    /// even on a concurrent queue. Up to 4,096 deliveries are queued individually, then one per name.
    ///
    /// The corresponding C function is `notify_register_dispatch`.
    public func addObserver(
        forName name: NotifyName,
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.name(name), ignoringOwnPosts, on: queue, callback)
    }

    /// Observes a name given as a string, with callbacks on a dispatch queue.
    public func addObserver(
        forName name: String,
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.name(NotifyName(name)), ignoringOwnPosts, on: queue, callback)
    }

    /// Observes several names with one callback on a dispatch queue.
    public func addObserver(
        forNames names: [NotifyName],
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.names(names), ignoringOwnPosts, on: queue, callback)
    }

    /// Observes every name that begins with one of these prefixes, with callbacks on a dispatch queue.
    public func addObserver(
        forPrefixes prefixes: [String],
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(.prefixes(prefixes), ignoringOwnPosts, on: queue, callback)
    }

    /// Observes a name, with callbacks on a dispatch queue, and suspends the task until the bus has confirmed the
    /// registration.
    ///
    /// Cancelling the task does not cut this short.
    public func addObserver(
        forName name: NotifyName,
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.name(name), ignoringOwnPosts, on: queue, callback)
    }

    /// Observes a name given as a string, with callbacks on a dispatch queue, and suspends the task until the bus has
    /// confirmed the registration.
    ///
    /// Cancelling the task does not cut this short.
    public func addObserver(
        forName name: String,
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.name(NotifyName(name)), ignoringOwnPosts, on: queue, callback)
    }

    /// Observes several names, with callbacks on a dispatch queue, and suspends the task until the bus has confirmed
    /// the registration.
    ///
    /// Cancelling the task does not cut this short.
    public func addObserver(
        forNames names: [NotifyName],
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.names(names), ignoringOwnPosts, on: queue, callback)
    }

    /// Observes every name that begins with one of these prefixes, with callbacks on a dispatch queue, and suspends the
    /// task until the bus has confirmed the registration.
    ///
    /// Cancelling the task does not cut this short.
    public func addObserver(
        forPrefixes prefixes: [String],
        ignoringOwnPosts: Bool = false,
        queue: DispatchQueue,
        using callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await observe(.prefixes(prefixes), ignoringOwnPosts, on: queue, callback)
    }

    private func observe(
        _ subject: Subject,
        _ ignoringOwnPosts: Bool,
        on queue: DispatchQueue,
        _ callback: @escaping @Sendable (NotifyName) -> Void
    ) throws(NotifyBusError) -> Observation {
        try observe(subject, ignoringOwnPosts: ignoringOwnPosts, for: QueueClient(queue: queue), calling: callback).1
    }

    private func observe(
        _ subject: Subject,
        _ ignoringOwnPosts: Bool,
        on queue: DispatchQueue,
        _ callback: @escaping @Sendable (NotifyName) -> Void
    ) async throws(NotifyBusError) -> Observation {
        try await Waiting.perform { () throws(NotifyBusError) in
            try self.observe(subject, ignoringOwnPosts, on: queue, callback)
        }
    }
}

/// Runs an observer's callbacks on a dispatch queue, one block at a time.
private struct QueueClient: ObserverClient {
    /// How many deliveries a block makes before it yields to other work on the queue.
    private static let turn = 64

    let queue: DispatchQueue

    func wake(for observer: Observer) {
        queue.async {
            for _ in 0..<QueueClient.turn {
                guard let name = observer.takeNext() else { return }
                observer.call(name)
            }
            wake(for: observer)
        }
    }

    func end() {}
}

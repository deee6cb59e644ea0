// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// A change that a center reports about its observing connection.
    public struct ConnectionChange: Hashable, Sendable {
        /// What has changed. More kinds may be added.
        public struct Kind: Hashable, Sendable, CustomStringConvertible {
            private let name: String

            /// The bus went away, or a center that waits for the bus did not find it; no posts are heard until
            /// `reconnected`.
            public static let disconnected = Kind(name: "disconnected")
            /// The bus is back, or available for the first time, and every observer has been registered.
            public static let reconnected = Kind(name: "reconnected")

            /// The name of the kind, for logs.
            public var description: String { name }
        }

        /// What has changed.
        public let kind: Kind
        /// Why there is no connection; nil if there is one.
        public let error: NotifyBusError?

        package static func disconnected(_ error: NotifyBusError) -> ConnectionChange {
            ConnectionChange(kind: .disconnected, error: error)
        }

        package static var reconnected: ConnectionChange { ConnectionChange(kind: .reconnected, error: nil) }
    }

    /// Reports the changes of the observing connection from now on, on the center's thread.
    ///
    /// - Returns: the number by which to end that.
    package func follow(_ follower: Follower<ConnectionChange>) -> (changes: ConnectionChanges, number: Int) {
        (connection, connection.add(follower))
    }
}

/// Those who follow the changes of a center's observing connection.
package final class ConnectionChanges: Sendable {
    private let followers = Monitor(Followers<NotifyCenter.ConnectionChange>())

    func report(_ change: NotifyCenter.ConnectionChange) { followers.withLock { $0.report(change) } }
    func add(_ follower: Follower<NotifyCenter.ConnectionChange>) -> Int { followers.withLock { $0.add(follower) } }
    package func remove(_ number: Int) { followers.withLock { $0.remove(number) } }
    func end() { followers.withLock { $0.takeAll() }.forEach { $0.end() } }
}

/// Someone who follows changes. Called with a lock held, so it must only pass them on.
package struct Follower<Value: Sendable>: Sendable {
    let change: @Sendable (Value) -> Void
    let end: @Sendable () -> Void

    package init(change: @escaping @Sendable (Value) -> Void, end: @escaping @Sendable () -> Void) {
        self.change = change
        self.end = end
    }
}

/// Several of them. They are few, so this is an array: metadata of a dictionary would be made with each first center.
struct Followers<Value: Sendable>: Sendable {
    private var all: [(number: Int, follower: Follower<Value>)] = []
    private var lastNumber = 0
    private var hasEnded = false

    var isEmpty: Bool { all.isEmpty }

    func report(_ change: Value) {
        for (_, follower) in all { follower.change(change) }
    }

    /// - Returns: the number by which to remove it.
    mutating func add(_ follower: Follower<Value>) -> Int {
        lastNumber += 1
        if hasEnded { follower.end() } else { all.append((lastNumber, follower)) }
        return lastNumber
    }

    mutating func remove(_ number: Int) {
        all.removeAll { $0.number == number }
    }

    /// Nobody is told anything after this. Those that are returned must be told that it has ended, without the lock.
    mutating func takeAll() -> [Follower<Value>] {
        hasEnded = true
        defer { all = [] }
        return all.map(\.follower)
    }
}

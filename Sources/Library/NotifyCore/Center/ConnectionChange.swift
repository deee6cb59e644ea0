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

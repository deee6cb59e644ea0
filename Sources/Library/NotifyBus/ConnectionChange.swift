// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension NotifyCenter {
    /// Whether a center is connected to its bus, as ``NotifyCenter/connectionChanges()`` reports it.
    public struct ConnectionChange: Hashable, Sendable, CustomStringConvertible {
        /// What there is now. More kinds may be added.
        public struct Kind: Hashable, Sendable, CustomStringConvertible {
            package let core: CoreCenter.ConnectionChange.Kind

            /// The bus is there, for the first time or again, and every observer has been registered.
            public static let connected = Kind(core: .connected)
            /// The bus is away or could not be reached; until `connected` no posts are heard, and what is posted waits.
            public static let disconnected = Kind(core: .disconnected)

            /// The name of the kind, for logs.
            public var description: String { "\(core)" }
        }

        package let core: CoreCenter.ConnectionChange

        package init(_ core: CoreCenter.ConnectionChange) { self.core = core }

        /// What there is now.
        public var kind: Kind { Kind(core: core.kind) }
        /// Why there is no connection; nil if there is one.
        public var error: NotifyBusError? { core.error.map { NotifyBusError($0) } }

        /// The bus is there.
        public static var connected: ConnectionChange { ConnectionChange(.connected) }

        /// The bus is away.
        public static func disconnected(_ error: NotifyBusError) -> ConnectionChange {
            ConnectionChange(.disconnected(error.core))
        }

        /// The kind, and the reason if there is one: “disconnected: There is no session bus.”
        public var description: String { core.description }
    }
}

extension NotifyCenter {
    /// Whether the center is connected to its bus: first the present state, then its changes from now on.
    ///
    /// This does not connect. In a center that has not tried to yet the sequence begins with the outcome of the first
    /// attempt.
    ///
    /// They come in order with the callbacks of the center. A task that does not keep up sees only the latest two. The
    /// sequence ends when the task is cancelled or the center is closed. It is for one consumer; call this again for
    /// another.
    public func connectionChanges() -> some AsyncSequence<ConnectionChange, Never> & Sendable {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ConnectionChange.self,
            bufferingPolicy: .bufferingNewest(2)
        )
        let (changes, number) = core.follow(
            Follower(change: { continuation.yield(ConnectionChange($0)) }, end: { continuation.finish() })
        )
        continuation.onTermination = { [weak changes] _ in changes?.remove(number) }
        return stream
    }
}

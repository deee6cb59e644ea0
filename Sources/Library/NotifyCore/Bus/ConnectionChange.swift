// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Whether a center is connected to its bus, as ``NotifyCenter/connectionChanges()`` reports it.
    public struct ConnectionChange: Hashable, Sendable, CustomStringConvertible {
        /// What there is now. More kinds may be added.
        public struct Kind: Hashable, Sendable, CustomStringConvertible {
            private let name: String

            /// The bus is there, for the first time or again, and every observer has been registered.
            public static let connected = Kind(name: "connected")
            /// The bus is away or could not be reached; until `connected` no posts are heard, and what is posted waits.
            public static let disconnected = Kind(name: "disconnected")

            /// The name of the kind, for logs.
            public var description: String { name }
        }

        /// What there is now.
        public let kind: Kind
        /// Why there is no connection; nil if there is one.
        public let error: NotifyBusError?

        /// The bus is there.
        public static var connected: ConnectionChange { ConnectionChange(kind: .connected, error: nil) }

        /// The bus is away.
        public static func disconnected(_ error: NotifyBusError) -> ConnectionChange {
            ConnectionChange(kind: .disconnected, error: error)
        }

        /// The kind, and the reason if there is one: “disconnected: There is no session bus.”
        public var description: String { error.map { "\(kind): \($0)" } ?? "\(kind)" }
    }
}

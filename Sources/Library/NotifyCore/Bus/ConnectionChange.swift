// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Whether a center is connected to its bus, and why not.
    package struct ConnectionChange: Hashable, Sendable, CustomStringConvertible {
        package enum Kind: Hashable, Sendable {
            /// The bus is there, for the first time or again, and every observer has been registered.
            case connected
            /// The bus is away or could not be reached.
            case disconnected
        }

        /// What there is now.
        package let kind: Kind
        /// Why there is no connection; nil if there is one.
        package let error: NotifyBusError?

        /// The bus is there.
        package static var connected: ConnectionChange { ConnectionChange(kind: .connected, error: nil) }

        /// The bus is away.
        package static func disconnected(_ error: NotifyBusError) -> ConnectionChange {
            ConnectionChange(kind: .disconnected, error: error)
        }

        /// The kind, and the reason if there is one: “disconnected: There is no session bus.”
        package var description: String { error.map { "\(kind): \($0)" } ?? "\(kind)" }
    }
}

// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Whether the center is connected to its bus, as far as it knows; false before its first use.
    package var isConnected: Bool { (connection.current ?? engine.present)?.kind == .connected }

    /// Reports the present state of the connection, if anything is known of it, and its changes from now on, on the
    /// center's thread.
    ///
    /// - Returns: the number by which to end that.
    package func follow(_ follower: Follower<ConnectionChange>) -> (changes: ConnectionChanges, number: Int) {
        (connection, connection.add(follower, present: engine.present))
    }
}

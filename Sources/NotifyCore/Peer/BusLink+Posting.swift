// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// Posts a name on this connection, in order with the calls made on it.
    package func post(_ name: NotifyName) {
        emit(
            path: WireFormat.path(for: name),
            interface: WireFormat.interface(for: name),
            member: WireFormat.member,
            [.string(name.string)]
        )
    }
}

// SPDX-License-Identifier: Apache-2.0

/// A signal that is not a post.
package struct BusSignal: Sendable {
    package let sender: String
    package let path: String
    package let interface: String
    package let member: String
    /// Descriptors among them belong to the handler of the signal.
    package let arguments: [BusValue]

    package init(sender: String, path: String, interface: String, member: String, arguments: [BusValue]) {
        (self.sender, self.path, self.interface) = (sender, path, interface)
        (self.member, self.arguments) = (member, arguments)
    }
}

/// The bus reports that a name has another owner, or none: for a unique name, that its connection came or has left. See
/// the D-Bus specification, "org.freedesktop.DBus.NameOwnerChanged".
package struct OwnerChange {
    package let name: String
    /// Empty if there is none.
    package let owner: String

    /// - Returns: nil if it is another signal. Only the bus can send this one.
    package init?(_ signal: BusSignal) {
        guard signal.sender == BusMessage.busName, signal.interface == BusMessage.busName,
            signal.member == "NameOwnerChanged", signal.arguments.count == 3, let name = signal.arguments[0].string,
            let owner = signal.arguments[2].string
        else { return nil }
        (self.name, self.owner) = (name, owner)
    }

    /// The match rule for the owners of a name; nil means all names.
    package static func rule(of name: String?) -> String {
        let bus = BusMessage.busName
        return "type='signal',sender='\(bus)',interface='\(bus)',member='NameOwnerChanged'"
            + (name.map { ",arg0='\($0)'" } ?? "")
    }
}

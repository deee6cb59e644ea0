// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension AgentInterface.ListEntry {
    /// The entries sorted by process and then by age of the connection.
    package static func sorted(_ entries: [Self]) -> [Self] {
        entries.sorted {
            ($0.process, $0.order.major, $0.order.minor) < ($1.process, $1.order.major, $1.order.minor)
        }
    }

    /// The numbers of the unique name: as text, `:1.10` would come before `:1.9`.
    private var order: (major: UInt64, minor: UInt64) {
        let parts = name.drop { $0 == ":" }.split(separator: ".").map { UInt64($0) ?? .max }
        return (parts.first ?? .max, parts.dropFirst().first ?? .max)
    }

    /// How its state is shown.
    package var style: TextStyle {
        switch state {
        case "foreground": .good
        case "background": .weak
        default: .notable
        }
    }

    /// Everything that the agent said about it, on one line.
    package var json: String {
        var object = JSONObject()
        for (key, value) in fields { object.add(key, value) }
        return object.line
    }
}

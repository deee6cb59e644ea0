// SPDX-License-Identifier: Apache-2.0

import NotifyNames
package import NotifyWire

extension AgentInterface {
    /// Asks for every registered connection.
    package struct List: ProtocolCall, WithoutArguments {
        package static let member = "List"

        package init() {}

        package struct Answer: ProtocolArguments {
            package static let parameters = [Parameter("connections", "aa{sv}")]
            package var connections: [ListEntry]

            package init(connections: [ListEntry]) { self.connections = connections }

            package init(reading arguments: [BusValue]) throws(ArgumentError) {
                connections = []
                for element in try arguments.read(0, \.elements) { connections.append(try ListEntry(element)) }
            }

            package var arguments: [BusValue] {
                [.array(element: "a{sv}", connections.map { .dictionary($0.fields) })]
            }
        }
    }

    /// One observing connection.
    package struct ListEntry: Equatable, Sendable {
        /// Its unique name.
        package var name = ""
        package var process: UInt32 = 0
        package var user: UInt32 = 0
        package var program = ""
        package var application = ""
        package var state = ""
        /// Whether the agent has taken it off the bus, because its process was stopped.
        package var isParked = false
        /// How many names it observes.
        package var names: UInt32 = 0
        /// How many names are pending for it.
        package var pending: UInt32 = 0
        /// How many posts it has dropped.
        package var dropped: UInt64 = 0
        /// When it entered its state, in seconds since 1970.
        package var since: UInt64 = 0
        /// Who has decided on its state; nil if the agent doesn't say.
        package var decider: String?
        /// Whether its program has the focus; nil if the agent doesn't say.
        package var hasFocus: Bool?
        /// The names that it observes, or some of them if there are many; nil if the agent doesn't say.
        package var observedNames: [String]?
        /// The prefixes that it observes, likewise.
        package var observedPrefixes: [String]?
        /// Anything else that a later version of the agent says, by key.
        package var others: [(key: String, value: BusValue)] = []

        package init() {}

        fileprivate init(_ value: BusValue) throws(ArgumentError) {
            var reader = try FieldReader(value)
            name = try reader.need("name", "s", \.string)
            process = try reader.need("pid", "u", \.exactUInt32)
            user = try reader.need("uid", "u", \.exactUInt32)
            program = try reader.need("program", "s", \.string)
            application = try reader.need("application", "s", \.string)
            state = try reader.need("state", "s", \.string)
            isParked = try reader.need("parked", "b", \.exactBoolean)
            names = try reader.need("names", "u", \.exactUInt32)
            pending = try reader.need("pending", "u", \.exactUInt32)
            dropped = try reader.need("dropped", "t", \.uint64)
            since = try reader.need("since", "t", \.uint64)
            decider = try reader.take("decider", "s", \.string)
            hasFocus = try reader.take("focused", "b", \.exactBoolean)
            observedNames = try reader.take("observed", "as", \.strings)
            observedPrefixes = try reader.take("prefixes", "as", \.strings)
            others = reader.rest.sorted { $0.key < $1.key }
        }

        /// All fields, in display order.
        package var fields: [(String, BusValue)] {
            var fields: [(String, BusValue)] = [
                ("name", .string(name)), ("pid", .uint32(process)), ("uid", .uint32(user)),
                ("program", .string(program)), ("application", .string(application)), ("state", .string(state)),
                ("parked", .boolean(isParked)), ("names", .uint32(names)), ("pending", .uint32(pending)),
                ("dropped", .uint64(dropped)), ("since", .uint64(since)),
            ]
            if let decider { fields.append(("decider", .string(decider))) }
            if let hasFocus { fields.append(("focused", .boolean(hasFocus))) }
            if let observedNames { fields.append(("observed", .strings(observedNames))) }
            if let observedPrefixes { fields.append(("prefixes", .strings(observedPrefixes))) }
            return fields + others.map { ($0.key, $0.value) }
        }

        package static func == (one: ListEntry, other: ListEntry) -> Bool {
            one.fields.elementsEqual(other.fields) { $0 == $1 }
        }
    }
}

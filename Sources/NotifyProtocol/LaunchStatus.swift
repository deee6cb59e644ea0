// SPDX-License-Identifier: Apache-2.0

import NotifyNames
package import NotifyWire

extension AgentInterface {
    /// What is started for names, and its progress.
    package struct LaunchStatus: Equatable, Sendable {
        /// The name of its file, without `.conf`.
        package var name = ""
        package var file = ""
        package var names: [String] = []
        package var prefixes: [String] = []
        /// `start`, `run` or `activate`.
        package var action = ""
        /// The unit, the command line or the bus name.
        package var program = ""
        /// The unit in which a command runs, or a pattern of such units; empty for others.
        package var unit = ""
        /// `idle`, `settling`, `starting`, `running`, `limited`, `off`, `waking`, or `broken` if the file can't be used.
        package var state = ""
        /// Why it is off or broken, for display.
        package var reason = ""
        /// How often it was started, and how often that failed.
        package var starts: UInt64 = 0
        package var failures: UInt64 = 0
        /// How many posted names are still due.
        package var due: UInt32 = 0
        /// The result of the last start, for display.
        package var result = ""

        package init() {}

        /// Reads the field "launches" of Status.
        package static func entries(in value: BusValue) throws(ArgumentError) -> [LaunchStatus] {
            guard value.hasType("aa{sv}"), let elements = value.elements else {
                throw .mistyped(key: "launches", expected: "aa{sv}", given: value.signature)
            }
            var entries: [LaunchStatus] = []
            for element in elements { entries.append(try LaunchStatus(element)) }
            return entries
        }

        private init(_ value: BusValue) throws(ArgumentError) {
            var reader = try FieldReader(value)
            name = try reader.need("name", "s", \.string)
            file = try reader.take("file", "s", \.string) ?? ""
            names = try reader.take("names", "as", \.strings) ?? []
            prefixes = try reader.take("prefixes", "as", \.strings) ?? []
            action = try reader.take("action", "s", \.string) ?? ""
            program = try reader.take("program", "s", \.string) ?? ""
            unit = try reader.take("unit", "s", \.string) ?? ""
            state = try reader.need("state", "s", \.string)
            reason = try reader.take("reason", "s", \.string) ?? ""
            starts = try reader.need("starts", "t", \.uint64)
            failures = try reader.take("failures", "t", \.uint64) ?? 0
            due = try reader.need("due", "u", \.uint32)
            result = try reader.take("result", "s", \.string) ?? ""
        }

        package var value: BusValue {
            .dictionary([
                ("name", .string(name)), ("file", .string(file)), ("names", .strings(names)),
                ("prefixes", .strings(prefixes)), ("action", .string(action)), ("program", .string(program)),
                ("unit", .string(unit)),
                ("state", .string(state)), ("reason", .string(reason)), ("starts", .uint64(starts)),
                ("failures", .uint64(failures)), ("due", .uint32(due)), ("result", .string(result)),
            ])
        }
    }
}

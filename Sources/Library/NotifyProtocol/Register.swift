// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyNames
package import NotifyWire

extension AgentInterface {
    /// A connection registers as an observer, with what it observes and its previous state.
    ///
    /// Its reader owns the socket that comes with it.
    package struct Register: ProtocolCall {
        package static let member = "Register"
        package static let parameters = [Parameter("options", "a{sv}")]
        package static let keepsDescriptor = true

        package var names: [String] = []
        package var prefixes: [String] = []
        /// The state that the connection believes to be in; nil if it doesn't say.
        package var state: LifecycleState?
        /// Its unique name before it was reconnected, its present one if that was to another bus, or empty.
        package var previous = ""
        /// Other previous unique names by which the agent may know it: a registration was in progress when the
        /// connection was lost.
        package var earlier: [String] = []
        /// Who has decided on that state, according to the last ``Decided``; empty if unknown.
        package var decider = ""
        /// The state that its program has reported last, if it is to count under a later agent.
        package var reported: LifecycleState?
        /// Whether it wants to follow the desktop: to be in the foreground only while its program has the focus, and
        /// its session is active and not locked.
        package var followsDesktop = false
        /// The program's name, for display.
        package var program = ""
        /// A duplicate of its own socket.
        package var socket: Int32?
        /// The states of names that it had set under an earlier agent.
        package var states: [NameStateEntry] = []

        package init() {}

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            guard let value = arguments.first else { throw .types(expected: Self.signature, given: "") }
            try read(value)
        }

        private mutating func read(_ value: BusValue) throws(ArgumentError) {
            var fields = try FieldReader(value)
            names = try fields.take("names", "as", \.exactStrings) ?? []
            prefixes = try fields.take("prefixes", "as", \.exactStrings) ?? []
            previous = try fields.take("previous", "s", \.string) ?? ""
            earlier = try fields.take("earlier", "as", \.exactStrings) ?? []
            decider = try fields.take("decider", "s", \.string) ?? ""
            followsDesktop = try fields.take("followsDesktop", "b", \.exactBoolean) ?? false
            program = try fields.take("program", "s", \.string) ?? ""
            states = try fields.take("states", "a(stt)", NameStateEntry.read) ?? []
            state = try Register.takeState("state", &fields)
            reported = try Register.takeState("reported", &fields)
            socket = try fields.take("socket", "h", \.descriptor)
            // Options of a later version.
            Array(fields.rest.values).closeDescriptors()
        }

        private static func takeState(
            _ key: String,
            _ fields: inout FieldReader
        ) throws(ArgumentError) -> LifecycleState? {
            guard let text = try fields.take(key, "s", \.string), !text.isEmpty else { return nil }
            guard let state = LifecycleState(rawValue: text) else { throw .value("'\(text)' is not a state.") }
            return state
        }

        package var arguments: [BusValue] {
            var options: [(String, BusValue)] = [
                ("names", .strings(names)), ("prefixes", .strings(prefixes)), ("state", .string(state?.rawValue ?? "")),
                ("previous", .string(previous)), ("program", .string(program)), ("decider", .string(decider)),
                ("followsDesktop", .boolean(followsDesktop)),
            ]
            if !earlier.isEmpty { options.append(("earlier", .strings(earlier))) }
            if let socket { options.append(("socket", .descriptor(socket))) }
            if let reported { options.append(("reported", .string(reported.rawValue))) }
            if !states.isEmpty { options.append(("states", NameStateEntry.value(states))) }
            return [.dictionary(options)]
        }

        /// The state that the connection is in, the names that were posted while it was suspended or parked, and
        /// whether these are all that it has missed since its previous connection ended.
        package struct Answer: WithFields {
            package static var fields: [Field<Self>] {
                [Field("state", \.state), Field("pending", \.pending), Field("complete", \.isComplete)]
            }
            package var state = LifecycleState.foreground
            package var pending: [String] = []
            package var isComplete = false

            package init() {}

            package init(state: LifecycleState, pending: [String], isComplete: Bool = false) {
                (self.state, self.pending, self.isComplete) = (state, pending, isComplete)
            }
        }
    }

    /// The state of a name, and when the agent accepted it.
    package struct NameStateEntry: Equatable, Sendable {
        package var name: String
        package var number: UInt64
        /// In nanoseconds of the monotonic clock.
        package var stamp: UInt64

        package init(name: String, number: UInt64, stamp: UInt64) {
            self.name = name
            self.number = number
            self.stamp = stamp
        }

        static func value(_ entries: [NameStateEntry]) -> BusValue {
            .array(
                element: "(stt)",
                entries.map { .structure([.string($0.name), .uint64($0.number), .uint64($0.stamp)]) }
            )
        }

        static func read(_ value: BusValue) -> [NameStateEntry]? {
            guard case .array("(stt)", let elements) = value else { return nil }
            var entries: [NameStateEntry] = []
            for element in elements {
                guard case .structure(let fields) = element, fields.count == 3, let name = fields[0].string,
                    let number = fields[1].uint64, let stamp = fields[2].uint64
                else { return nil }
                entries.append(NameStateEntry(name: name, number: number, stamp: stamp))
            }
            return entries
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyNames
package import NotifyWire

// What observers and commands ask of the agent. Register, List and Status have files of their own.
extension AgentInterface {
    /// Each method, with the type of its call. The agent's introspection data is generated from it.
    package static let methods: [any ProtocolCall.Type] = [
        Register.self, AddNames.self, RemoveNames.self, Report.self, SetState.self, SetNameState.self,
        GetNameState.self, FollowDesktop.self, Release.self, SetForeground.self, List.self, Status.self,
        OpenRelay.self, SetNaps.self,
    ]

    /// A registered connection observes more.
    package struct AddNames: ProtocolCall, NameLists {
        package typealias Answer = Acknowledgement
        package static let member = "AddNames"
        package var names: [String]
        package var prefixes: [String]

        package init(names: [String], prefixes: [String]) {
            self.names = names
            self.prefixes = prefixes
        }
    }

    /// A registered connection observes less.
    package struct RemoveNames: ProtocolCall, NameLists {
        package typealias Answer = Acknowledgement
        package static let member = "RemoveNames"
        package var names: [String]
        package var prefixes: [String]

        package init(names: [String], prefixes: [String]) {
            self.names = names
            self.prefixes = prefixes
        }
    }

    /// A program reports the state that it wants to be in.
    package struct Report: ProtocolCall {
        package typealias Answer = Acknowledgement
        package static let member = "Report"
        package static let parameters = [Parameter("state", "s")]
        package var state: LifecycleState

        package init(state: LifecycleState) { self.state = state }

        package init(reading arguments: [BusValue]) throws(ArgumentError) { state = try arguments.state(0) }

        package var arguments: [BusValue] { [.string(state.rawValue)] }
    }

    /// A person or program puts connections into a state.
    package struct SetState: ProtocolCall {
        package typealias Answer = ConnectionCount
        package static let member = "SetState"
        package static let parameters = [Parameter("target", "s"), Parameter("state", "s"), Parameter("freeze", "b")]

        /// `pid:N`, `:1.N` or `app:ID`.
        package var target: String
        package var state: LifecycleState
        /// Whether to stop the processes as well.
        package var freezes: Bool

        package init(target: String, state: LifecycleState, freezes: Bool) {
            self.target = target
            self.state = state
            self.freezes = freezes
        }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            target = try arguments.read(0, \.string)
            state = try arguments.state(1)
            freezes = try arguments.read(2, \.exactBoolean)
        }

        package var arguments: [BusValue] { [.string(target), .string(state.rawValue), .boolean(freezes)] }
    }

    /// Undoes what a person has set.
    package struct Release: ProtocolCall {
        package typealias Answer = ConnectionCount
        package static let member = "Release"
        package static let parameters = [Parameter("target", "s")]

        /// As in ``SetState``; empty for everyone.
        package var target: String

        package init(target: String) { self.target = target }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            target = try arguments.read(0, \.string)
        }

        package var arguments: [BusValue] { [.string(target)] }
    }

    /// How many connections a call has changed.
    package struct ConnectionCount: ProtocolArguments {
        package static let parameters = [Parameter("connections", "u")]
        package var connections: UInt32

        package init(connections: UInt32) { self.connections = connections }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            connections = try arguments.read(0, \.exactUInt32)
        }

        package var arguments: [BusValue] { [.uint32(connections)] }
    }

    /// A registered connection wants to follow the desktop, or no longer does.
    package struct FollowDesktop: ProtocolCall {
        package typealias Answer = Acknowledgement
        package static let member = "FollowDesktop"
        package static let parameters = [Parameter("follows", "b")]
        package var follows: Bool

        package init(follows: Bool) { self.follows = follows }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            follows = try arguments.read(0, \.exactBoolean)
        }

        package var arguments: [BusValue] { [.boolean(follows)] }
    }

    /// The bus wants the relay for sandboxes. Answered when the relay has its name.
    package struct OpenRelay: ProtocolCall, WithoutArguments {
        package typealias Answer = Acknowledgement
        package static let member = "OpenRelay"

        package init() {}
    }

    /// A person turns naps off, or on again.
    package struct SetNaps: ProtocolCall {
        package typealias Answer = Acknowledgement
        package static let member = "SetNaps"
        package static let parameters = [Parameter("on", "b")]
        package var isOn: Bool

        package init(isOn: Bool) { self.isOn = isOn }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            isOn = try arguments.read(0, \.exactBoolean)
        }

        package var arguments: [BusValue] { [.boolean(isOn)] }
    }

    /// A desktop reports which process has the focus.
    package struct SetForeground: ProtocolCall {
        package typealias Answer = Acknowledgement
        package static let member = "SetForeground"
        package static let parameters = [Parameter("process", "u")]

        /// 0 for none.
        package var process: Int32

        package init(process: Int32) { self.process = process }

        /// Accepts numbers of the types i and d as well, for languages with only one numeric type.
        package init(_ arguments: [BusValue]) throws(ArgumentError) {
            let number: Int32? =
                switch arguments.first {
                case .number(UInt8(ascii: "u"), let value): Int32(exactly: value)
                case .number(UInt8(ascii: "i"), let value): Int32(truncatingIfNeeded: value)
                case .double(let value): Int32(exactly: value)
                default: nil
                }
            guard arguments.count == 1, ["u", "i", "d"].contains(arguments[0].signature) else {
                arguments.closeDescriptors()
                throw .types(expected: Self.signature, given: arguments.map(\.signature).joined())
            }
            guard let number, number >= 0 else {
                throw .value("A process is a number from 1 to 2147483647, or 0 for none.")
            }
            process = number
        }

        package init(reading arguments: [BusValue]) throws(ArgumentError) { try self.init(arguments) }

        package var arguments: [BusValue] { [.uint32(UInt32(max(0, process)))] }
    }

    /// Sets the state of a name.
    package struct SetNameState: ProtocolCall {
        package static let member = "SetNameState"
        package static let parameters = [Parameter("name", "s"), Parameter("value", "t")]
        package var name: String
        package var value: UInt64

        package init(name: String, value: UInt64) {
            self.name = name
            self.value = value
        }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            name = try arguments.read(0, \.string)
            value = try arguments.read(1, \.uint64)
        }

        package var arguments: [BusValue] { [.string(name), .uint64(value)] }

        package struct Answer: ProtocolArguments {
            package static let parameters = [Parameter("stamp", "t")]
            /// When the agent accepted it, in nanoseconds of its monotonic clock: of two, the later one wins.
            package var stamp: UInt64

            package init(stamp: UInt64) { self.stamp = stamp }

            package init(reading arguments: [BusValue]) throws(ArgumentError) {
                stamp = try arguments.read(0, \.uint64)
            }

            package var arguments: [BusValue] { [.uint64(stamp)] }
        }
    }

    /// Asks for the state of a name.
    package struct GetNameState: ProtocolCall {
        package static let member = "GetNameState"
        package static let parameters = [Parameter("name", "s")]
        package var name: String

        package init(name: String) { self.name = name }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            name = try arguments.read(0, \.string)
        }

        package var arguments: [BusValue] { [.string(name)] }

        package struct Answer: ProtocolArguments {
            package static let parameters = [Parameter("value", "t")]
            package var value: UInt64

            package init(value: UInt64) { self.value = value }

            package init(reading arguments: [BusValue]) throws(ArgumentError) {
                value = try arguments.read(0, \.uint64)
            }

            package var arguments: [BusValue] { [.uint64(value)] }
        }
    }
}

/// Two lists: of names, and of prefixes of names.
package protocol NameLists: ProtocolArguments {
    var names: [String] { get }
    var prefixes: [String] { get }
    init(names: [String], prefixes: [String])
}

extension NameLists {
    package static var parameters: [Parameter] { [Parameter("names", "as"), Parameter("prefixes", "as")] }

    package init(reading arguments: [BusValue]) throws(ArgumentError) {
        self.init(names: try arguments.read(0, \.exactStrings), prefixes: try arguments.read(1, \.exactStrings))
    }

    package var arguments: [BusValue] { [.strings(names), .strings(prefixes)] }
}

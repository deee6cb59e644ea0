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
    package struct Report: ProtocolCall, OneArgument {
        package typealias Answer = Acknowledgement
        package static let member = "Report"
        package static let parameter = "state"
        package var value: LifecycleState

        package init(_ value: LifecycleState) { self.value = value }
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
            target = try arguments.read(0)
            state = try arguments.read(1)
            freezes = try arguments.read(2)
        }

        package var arguments: [BusValue] { [.string(target), .string(state.rawValue), .boolean(freezes)] }
    }

    /// Undoes what a person has set.
    package struct Release: ProtocolCall, OneArgument {
        package typealias Answer = ConnectionCount
        package static let member = "Release"
        package static let parameter = "target"

        /// As in ``SetState``; empty for everyone.
        package var value: String

        package init(_ value: String) { self.value = value }
    }

    /// How many connections a call has changed.
    package struct ConnectionCount: OneArgument {
        package static let parameter = "connections"
        package var value: UInt32

        package init(_ value: UInt32) { self.value = value }
    }

    /// A registered connection wants to follow the desktop, or no longer does.
    package struct FollowDesktop: ProtocolCall, OneArgument {
        package typealias Answer = Acknowledgement
        package static let member = "FollowDesktop"
        package static let parameter = "follows"
        package var value: Bool

        package init(_ value: Bool) { self.value = value }
    }

    /// The bus wants the relay for sandboxes. Answered when the relay has its name.
    package struct OpenRelay: ProtocolCall, WithoutArguments {
        package typealias Answer = Acknowledgement
        package static let member = "OpenRelay"

        package init() {}
    }

    /// A person turns naps off, or on again.
    package struct SetNaps: ProtocolCall, OneArgument {
        package typealias Answer = Acknowledgement
        package static let member = "SetNaps"
        package static let parameter = "on"
        package var value: Bool

        package init(_ value: Bool) { self.value = value }
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
            name = try arguments.read(0)
            value = try arguments.read(1)
        }

        package var arguments: [BusValue] { [.string(name), .uint64(value)] }

        package struct Answer: OneArgument {
            package static let parameter = "stamp"
            /// When the agent accepted it, in nanoseconds of its monotonic clock: of two, the later one wins.
            package var value: UInt64

            package init(_ value: UInt64) { self.value = value }
        }
    }

    /// Asks for the state of a name.
    package struct GetNameState: ProtocolCall, OneArgument {
        package static let member = "GetNameState"
        package static let parameter = "name"
        package var value: String

        package init(_ value: String) { self.value = value }

        package struct Answer: OneArgument {
            package static let parameter = "value"
            package var value: UInt64

            package init(_ value: UInt64) { self.value = value }
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
        self.init(names: try arguments.read(0), prefixes: try arguments.read(1))
    }

    package var arguments: [BusValue] { [.strings(names), .strings(prefixes)] }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyNames
package import NotifyWire

// The messages of the lifecycle protocol; Register, List and Status have files of their own.

// What observers and commands ask of the agent.
extension AgentInterface {
    /// Each method, with the type of its call. The agent's introspection data is generated from it.
    package static let methods: [any ProtocolCall.Type] = [
        Register.self, AddNames.self, RemoveNames.self, Report.self, SetState.self, SetNameState.self,
        SwapNameState.self, Hold.self, LetGo.self, GetNameState.self, FollowDesktop.self, Release.self,
        SetForeground.self, List.self, Status.self, OpenRelay.self, SetNaps.self, HandOver.self,
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
    package struct SetState: ProtocolCall, WithFields {
        package typealias Answer = ConnectionCount
        package static let member = "SetState"
        package static var fields: [Field<Self>] {
            [Field("target", \.target), Field("state", \.state), Field("freeze", \.freezes)]
        }

        /// `pid:N`, `:1.N` or `app:ID`.
        package var target = ""
        package var state = LifecycleState.foreground
        /// Whether to stop the processes as well.
        package var freezes = false

        package init() {}

        package init(target: String, state: LifecycleState, freezes: Bool) {
            (self.target, self.state, self.freezes) = (target, state, freezes)
        }
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

    /// The agent's successor asks for what it knows.
    package struct HandOver: ProtocolCall, WithoutArguments {
        package static let member = "HandOver"

        package init() {}

        /// Its reader owns both descriptors.
        package struct Answer: ProtocolArguments {
            package static let parameters = [Parameter("heritage", "h"), Parameter("socket", "h")]
            package static let keepsDescriptor = true
            /// A file in memory.
            package var heritage: Int32
            /// A duplicate of the agent's socket.
            package var socket: Int32

            package init(heritage: Int32, socket: Int32) { (self.heritage, self.socket) = (heritage, socket) }

            package init(reading arguments: [BusValue]) throws(ArgumentError) {
                heritage = try arguments.read(0, \.descriptor)
                socket = try arguments.read(1, \.descriptor)
            }

            package var arguments: [BusValue] { [.descriptor(heritage), .descriptor(socket)] }
        }
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
    package struct SetNameState: ProtocolCall, WithFields {
        package static let member = "SetNameState"
        package static var fields: [Field<Self>] { [Field("name", \.name), Field("value", \.value)] }
        package var name = ""
        package var value: UInt64 = 0

        package init() {}
        package init(name: String, value: UInt64) { (self.name, self.value) = (name, value) }

        package struct Answer: OneArgument {
            package static let parameter = "stamp"
            /// When the agent accepted it, in nanoseconds of its monotonic clock: of two, the later one wins.
            package var value: UInt64

            package init(_ value: UInt64) { self.value = value }
        }
    }

    /// Sets the state of a name if it is what the caller knows.
    package struct SwapNameState: ProtocolCall, WithFields {
        package static let member = "SwapNameState"
        package static var fields: [Field<Self>] {
            [Field("name", \.name), Field("old", \.old), Field("new", \.new)]
        }
        package var name = ""
        package var old: UInt64 = 0
        package var new: UInt64 = 0

        package init() {}
        package init(name: String, old: UInt64, new: UInt64) { (self.name, self.old, self.new) = (name, old, new) }

        package struct Answer: WithFields, Equatable {
            package static var fields: [Field<Self>] { [Field("value", \.value), Field("stamp", \.stamp)] }
            /// What the state was before.
            package var value: UInt64 = 0
            /// That of the new state, or 0 if the state has stayed as it was.
            package var stamp: UInt64 = 0

            package init() {}
            package init(value: UInt64, stamp: UInt64) { (self.value, self.stamp) = (value, stamp) }
        }
    }

    /// A registered connection wants sleep or shutdown to wait until it has let go.
    package struct Hold: ProtocolCall, OneArgument {
        package static let member = "Hold"
        package static let parameter = "name"
        package var value: String

        package init(_ value: String) { self.value = value }

        package struct Answer: OneArgument {
            package static let parameter = "number"
            /// Which time it was that the event was posted last.
            package var value: UInt64

            package init(_ value: UInt64) { self.value = value }
        }
    }

    /// It is done with what it does for the time with that number.
    package struct LetGo: ProtocolCall, WithFields {
        package typealias Answer = Acknowledgement
        package static let member = "LetGo"
        package static var fields: [Field<Self>] { [Field("name", \.name), Field("number", \.number)] }
        package var name = ""
        package var number: UInt64 = 0

        package init() {}
        package init(name: String, number: UInt64) { (self.name, self.number) = (name, number) }
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

// The agent's signals. States and sources are text here, so that listeners can show what a later version of the agent
// says.
extension AgentInterface {
    /// The state of a connection has changed. Broadcast.
    package struct StateChanged: ProtocolMessage, WithFields {
        package static let member = "StateChanged"
        package static var fields: [Field<Self>] {
            [
                Field("connection", \.connection), Field("process", \.process),
                Field("application", \.application), Field("from", \.from), Field("to", \.to),
            ]
        }
        package var connection = ""
        package var process: UInt32 = 0
        package var application = ""
        package var from = ""
        package var to = ""

        package init() {}

        package init(connection: String, process: UInt32, application: String, from: String, to: String) {
            (self.connection, self.process, self.application) = (connection, process, application)
            (self.from, self.to) = (from, to)
        }
    }

    /// A source has reported a new fact. Broadcast.
    package struct FactChanged: ProtocolMessage, WithFields {
        package static let member = "FactChanged"
        package static var fields: [Field<Self>] { [Field("source", \.source), Field("fact", \.fact)] }
        package var source = ""
        /// For display.
        package var fact = ""

        package init() {}
        package init(source: String, fact: String) { (self.source, self.fact) = (source, fact) }
    }

    /// The decider of a connection's state has changed. Sent to that connection alone.
    package struct Decided: ProtocolMessage, OneArgument {
        package static let member = "Decided"
        package static let parameter = "decider"
        package var value: String

        package init(_ value: String) { self.value = value }
    }

    /// The decider where nothing has been decided, so that a program is in the foreground.
    package static let nobody = "default"
}

// What the agent asks of an observer.
extension ObserverInterface {
    /// The D-Bus error by which an observer says that it observes names that the agent has yet to take note of.
    package static let namesAdded = "org.notifybus.Error.NamesAdded"

    /// The observer enters a state. The reply means that the state is in effect.
    package struct SetState: ProtocolCall, WithFields {
        package static let member = "SetState"
        package static var fields: [Field<Self>] { [Field("state", \.state), Field("additions", \.additions)] }
        package var state = LifecycleState.foreground
        /// How many calls of AddNames since the registration the agent has carried out. An observer that has made more is
        /// not suspended; it replies with the error ``namesAdded``, and the agent calls again.
        package var additions: UInt32 = 0

        package init() {}
        package init(state: LifecycleState, additions: UInt32) { (self.state, self.additions) = (state, additions) }

        package struct Answer: OneArgument {
            package static let parameter = "dropped"
            /// How many posts the observer has dropped so far.
            package var value: UInt64

            package init(_ value: UInt64) { self.value = value }
        }
    }

    /// Names that were posted while the observer was suspended, to be delivered once each.
    ///
    /// Each resumption ends with a call of fewer than ``limit`` names, possibly none: until then the agent has more.
    package struct Deliver: ProtocolCall, OneArgument {
        package typealias Answer = Acknowledgement
        package static let member = "Deliver"
        /// How many fit into one call: 2 MB at most.
        package static let limit = 4_096
        package static let parameter = "names"
        package var value: [String]

        package init(_ value: [String]) { self.value = value }
    }

    /// The states of names, to be reported when the observer registers with the next agent.
    package struct KeepStates: ProtocolCall {
        package typealias Answer = Acknowledgement
        package static let member = "KeepStates"
        package static let parameters = [Parameter("states", "a(stt)")]
        package var states: [AgentInterface.NameStateEntry]

        package init(_ states: [AgentInterface.NameStateEntry]) { self.states = states }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            guard let value = arguments.first, let states = AgentInterface.NameStateEntry.read(value) else {
                throw .types(expected: Self.signature, given: "")
            }
            self.states = states
        }

        package var arguments: [BusValue] { [AgentInterface.NameStateEntry.value(states)] }
    }

    /// Posts that the relay has heard for the observer, in their order. The next call follows when this one is answered.
    package struct DeliverPosts: ProtocolCall {
        package typealias Answer = Acknowledgement
        package static let member = "DeliverPosts"
        /// As many go into one call: 136 kB at most.
        package static let limit = 256
        package static let parameters = [Parameter("names", "as"), Parameter("senders", "as")]
        package var names: [String]
        /// Of each name the unique name of the poster's connection, by which an observer knows its own posts; empty where
        /// the posts of several became one.
        package var senders: [String]

        package init(names: [String], senders: [String]) {
            self.names = names
            self.senders = senders
        }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            names = try arguments.read(0)
            senders = try arguments.read(1)
            guard names.count == senders.count else { throw .value("There must be as many senders as names.") }
        }

        package var arguments: [BusValue] { [.strings(names), .strings(senders)] }
    }

    /// A mark in the stream, for the agent itself, which reads the stream of a stopped process. Observers ignore it.
    package struct Mark: ProtocolMessage, OneArgument {
        package static let member = "Mark"
        package static let parameter = "number"
        package var value: UInt64

        package init(_ value: UInt64) { self.value = value }
    }
}

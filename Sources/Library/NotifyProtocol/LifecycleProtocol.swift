// SPDX-License-Identifier: Apache-2.0

import NotifyNames
package import NotifyWire

/// The agent's side of the lifecycle protocol: its name on the bus, and its interface.
///
/// See Documentation/lifecycle-protocol.md. This folder defines every element of the protocol, once.
package enum AgentInterface {
    /// The well-known name, and the interface.
    package static let name = "org.notifybus.Agent1"
    package static let path = "/org/notifybus/Agent1"
    /// Also owned by the agent while it starts programs for names: a program that posts and exits waits until the agent
    /// has asked who posted.
    package static let launcherName = "org.notifybus.Launch1"

    package static let signals: [any ProtocolMessage.Type] = [StateChanged.self, FactChanged.self, Decided.self]

    /// The D-Bus errors that the agent returns, besides those of the bus.
    package enum ErrorName {
        package static let noSuchTarget = "org.notifybus.Error.NoSuchTarget"
        package static let notObserved = "org.notifybus.Error.NotObserved"
        package static let notRegistered = "org.notifybus.Error.NotRegistered"
        package static let timedOut = "org.notifybus.Error.TimedOut"
    }
}

/// Where an observer registers: with the agent, or with the relay if a sandbox keeps it from all others.
package struct LifecycleService: Equatable, Sendable {
    /// The well-known name, and the interface.
    package let name: String
    package let path: String

    package static let agent = LifecycleService(name: AgentInterface.name, path: AgentInterface.path)
    package static let relay = LifecycleService(name: RelayInterface.name, path: RelayInterface.path)
}

/// The relay's side of the protocol: what the agent serves for programs in sandboxes, on a connection of its own.
///
/// Its messages are those of the agent that concern only the caller, with the same arguments.
package enum RelayInterface {
    /// The well-known name, and the interface.
    package static let name = "org.notifybus.Relay1"
    package static let path = "/org/notifybus/Relay1"

    package static let methods: [any ProtocolCall.Type] = [
        AgentInterface.Register.self, AgentInterface.AddNames.self, AgentInterface.RemoveNames.self,
        AgentInterface.Report.self, AgentInterface.FollowDesktop.self, AgentInterface.SetNameState.self,
        AgentInterface.GetNameState.self, Synchronize.self,
    ]
    package static let signals: [any ProtocolMessage.Type] = [AgentInterface.Decided.self]

    /// Waits until all that was posted before has been passed on to the caller, and read by it.
    package struct Synchronize: ProtocolCall, WithoutArguments {
        package typealias Answer = Acknowledgement
        package static let member = "Synchronize"

        package init() {}
    }
}

/// The observer's side of the lifecycle protocol, which every observing connection serves.
package enum ObserverInterface {
    package static let name = "org.notifybus.Observer1"
    package static let path = "/org/notifybus/Observer1"

    package static let methods: [any ProtocolCall.Type] = [
        SetState.self, Deliver.self, DeliverPosts.self, KeepStates.self,
    ]
    package static let signals: [any ProtocolMessage.Type] = [Mark.self]
}

/// The content of a message: it writes itself to D-Bus arguments, and reads itself from them.
package protocol ProtocolArguments: Equatable, Sendable {
    /// The names of the arguments, with their types in D-Bus notation.
    static var parameters: [Parameter] { get }
    var arguments: [BusValue] { get }

    /// Whether a descriptor among the arguments stays open, and belongs to the reader of the message.
    static var keepsDescriptor: Bool { get }

    /// Reads arguments whose number and types are those of ``parameters``.
    init(reading arguments: [BusValue]) throws(ArgumentError)

    /// Reads arguments received over the bus, whatever they are.
    ///
    /// Descriptors among them are closed, except for one that the message keeps. If this throws, all are closed.
    init(_ arguments: [BusValue]) throws(ArgumentError)
}

/// A call or a signal.
package protocol ProtocolMessage: ProtocolArguments {
    static var member: String { get }
}

/// A call, and its reply.
package protocol ProtocolCall: ProtocolMessage {
    associatedtype Answer: ProtocolArguments
}

/// An argument of a message.
package struct Parameter: Equatable, Sendable {
    package let name: String
    package let type: String

    package init(_ name: String, _ type: String) {
        self.name = name
        self.type = type
    }
}

extension ProtocolArguments {
    package static var signature: String { parameters.map(\.type).joined() }

    package static var keepsDescriptor: Bool { false }

    package init(_ arguments: [BusValue]) throws(ArgumentError) {
        do throws(ArgumentError) {
            guard arguments.haveTypes(of: Self.parameters) else {
                throw .types(expected: Self.signature, given: arguments.map(\.signature).joined())
            }
            try self.init(reading: arguments)
        } catch {
            arguments.closeDescriptors()
            throw error
        }
        if !Self.keepsDescriptor { arguments.closeDescriptors() }
    }
}

/// An empty reply.
package struct Acknowledgement: WithoutArguments {
    package init() {}
}

/// A call or a reply that is empty.
package protocol WithoutArguments: ProtocolArguments {
    init()
}

extension WithoutArguments {
    package static var parameters: [Parameter] { [] }
    package var arguments: [BusValue] { [] }
    package init(reading arguments: [BusValue]) { self.init() }
}

/// A message with one argument.
package protocol OneArgument: ProtocolArguments {
    associatedtype Value: ArgumentValue
    /// The name of the argument.
    static var parameter: String { get }
    var value: Value { get }
    init(_ value: Value)
}

extension OneArgument {
    package static var parameters: [Parameter] { [Parameter(parameter, Value.type)] }
    package init(reading arguments: [BusValue]) throws(ArgumentError) { self.init(try arguments.read(0)) }
    package var arguments: [BusValue] { [value.argument] }
}

/// An argument of a message that has several.
package struct Field<Message> {
    fileprivate let parameter: Parameter
    fileprivate let read: (inout Message, [BusValue], Int) throws(ArgumentError) -> Void
    fileprivate let argument: (Message) -> BusValue

    package init<Value: ArgumentValue>(_ name: String, _ path: WritableKeyPath<Message, Value>) {
        parameter = Parameter(name, Value.type)
        read = { (message, arguments, index) throws(ArgumentError) in
            message[keyPath: path] = try arguments.read(index)
        }
        argument = { $0[keyPath: path].argument }
    }
}

/// A message whose arguments are its properties.
package protocol WithFields: ProtocolArguments {
    /// In the order of the arguments.
    static var fields: [Field<Self>] { get }
    init()
}

extension WithFields {
    package static var parameters: [Parameter] { fields.map(\.parameter) }
    package init(reading arguments: [BusValue]) throws(ArgumentError) {
        self.init()
        for (index, field) in Self.fields.enumerated() { try field.read(&self, arguments, index) }
    }
    package var arguments: [BusValue] { Self.fields.map { $0.argument(self) } }
}

/// Why arguments do not fit a message.
package enum ArgumentError: Error, Equatable {
    case types(expected: String, given: String)
    /// A key is missing in a dictionary.
    case missing(key: String)
    /// A value in a dictionary has another type.
    case mistyped(key: String, expected: String, given: String)
    /// The types are right, but the value is not valid.
    case value(String)

    /// A sentence for the caller.
    package func text(for member: String) -> String {
        switch self {
        case .types(let expected, let given):
            "\(member) takes arguments of type '\(expected)', not '\(ArgumentError.short(given))'."
        case .missing(let key): "The option '\(key)' is missing."
        case .mistyped(let key, let expected, _): "The option '\(key)' has type \(expected)."
        case .value(let text): text
        }
    }

    /// The reply to a call with these arguments.
    package func fault(for member: String) -> BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.InvalidArgs", message: text(for: member))
    }

    /// A signature has at most 255 bytes; one derived from a peer's arguments may have more.
    private static func short(_ signature: String) -> String { signature.utf8.count > 255 ? "…" : signature }
}

extension BusFault {
    package static let namesAdded = BusFault(
        name: ObserverInterface.namesAdded,
        message: "This connection observes names that the agent has yet to take note of."
    )
}

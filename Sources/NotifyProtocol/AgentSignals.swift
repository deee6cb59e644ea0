// SPDX-License-Identifier: Apache-2.0

import NotifyNames
package import NotifyWire

// The agent's signals. States and sources are text here, so that listeners can show what a later version of the agent
// says.
extension AgentInterface {
    /// The state of a connection has changed. Broadcast.
    package struct StateChanged: ProtocolMessage {
        package static let member = "StateChanged"
        package static let parameters = [
            Parameter("connection", "s"), Parameter("process", "u"), Parameter("application", "s"),
            Parameter("from", "s"), Parameter("to", "s"),
        ]
        package var connection: String
        package var process: UInt32
        package var application: String
        package var from: String
        package var to: String

        package init(connection: String, process: UInt32, application: String, from: String, to: String) {
            self.connection = connection
            self.process = process
            self.application = application
            self.from = from
            self.to = to
        }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            connection = try arguments.read(0)
            process = try arguments.read(1)
            application = try arguments.read(2)
            from = try arguments.read(3)
            to = try arguments.read(4)
        }

        package var arguments: [BusValue] {
            [.string(connection), .uint32(process), .string(application), .string(from), .string(to)]
        }
    }

    /// A source has reported a new fact. Broadcast.
    package struct FactChanged: ProtocolMessage {
        package static let member = "FactChanged"
        package static let parameters = [Parameter("source", "s"), Parameter("fact", "s")]
        package var source: String
        /// For display.
        package var fact: String

        package init(source: String, fact: String) {
            self.source = source
            self.fact = fact
        }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            source = try arguments.read(0)
            fact = try arguments.read(1)
        }

        package var arguments: [BusValue] { [.string(source), .string(fact)] }
    }

    /// The decider of a connection's state has changed. Sent to that connection alone.
    package struct Decided: ProtocolMessage, OneArgument {
        package static let member = "Decided"
        package static let parameter = "decider"
        package var value: String

        package init(_ value: String) { self.value = value }
    }

    /// The decider where nobody has decided anything, so that a program is in the foreground.
    package static let nobody = "default"
}

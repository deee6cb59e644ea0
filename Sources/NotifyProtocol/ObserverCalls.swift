// SPDX-License-Identifier: Apache-2.0

package import NotifyNames
package import NotifyWire

// What the agent asks of an observer.
extension ObserverInterface {
    /// The D-Bus error by which an observer says that it observes names that the agent has yet to take note of.
    package static let namesAdded = "org.notifybus.Error.NamesAdded"

    /// The observer enters a state. The reply means that the state is in effect.
    package struct SetState: ProtocolCall {
        package static let member = "SetState"
        package static let parameters = [Parameter("state", "s"), Parameter("additions", "u")]
        package var state: LifecycleState
        /// How many calls of AddNames since the registration the agent has carried out. An observer that has made more is
        /// not suspended; it replies with the error ``namesAdded``, and the agent calls again.
        package var additions: UInt32

        package init(state: LifecycleState, additions: UInt32) {
            self.state = state
            self.additions = additions
        }

        package init(reading arguments: [BusValue]) throws(ArgumentError) {
            state = try arguments.read(0)
            additions = try arguments.read(1)
        }

        package var arguments: [BusValue] { [.string(state.rawValue), .uint32(additions)] }

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

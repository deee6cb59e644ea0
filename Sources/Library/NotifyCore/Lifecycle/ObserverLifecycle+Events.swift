// SPDX-License-Identifier: Apache-2.0

// The events and effects of the observer's half of the lifecycle protocol.
extension ObserverLifecycle {
    package enum Event: Sendable {
        /// The bus has accepted the connection. From here on registrations wait for the agent.
        ///
        /// - Parameters:
        ///   - wasCutOff: whether the connection takes the place of one that the same bus has closed. Posts made
        ///     meanwhile were missed, unless the agent says that it has them all.
        ///   - isOnAnotherBus: whether the previous connection was to another bus, where the same unique names meant
        ///     others.
        ///   - needsRelay: whether the agent is a relay, by which alone posts come.
        case connected(uniqueName: String, wasCutOff: Bool, isOnAnotherBus: Bool, needsRelay: Bool = false)
        /// The connection is lost, and with it everything pending.
        case lost
        /// The result of `findAgent`: the agent, or nil if there is none that this program trusts.
        case found(search: Int, agent: String?)
        /// The reply to `register`; nil if the agent has refused, or is gone.
        case registered(agent: String, AgentInterface.Register.Answer?)
        /// Another connection owns the agent's name, or none does.
        case ownerChanged(String)
        case decided(String, by: String)
        /// - Parameter additions: how many reports of added names the agent has taken note of since the registration.
        case setState(LifecycleState, additions: UInt32, Call)
        case deliver([String], Call)
        /// A mark in the stream, which the agent wanted to read itself: it has read some of what came before.
        case marked(by: String)
        /// The bus has replied about a rule that was restored.
        case ruleAnswered
        /// The reply to `askBarrier`: everything that the bus had routed before has arrived.
        case barrierPassed(Int)
        case deadlinePassed
        /// The program wants to report something to the agent.
        case says(Statement)
        /// The agent has answered a report that it was asked to answer, or is gone.
        case additionAnswered(Int)
        /// The program wants to ask the agent something; ends in `ask` or `fail`.
        case asks(request: Int)
    }

    package enum Effect: Equatable, Sendable {
        /// Make the bus report when the agent's name changes owner.
        case watchAgent
        /// Find out which process is the agent, and whether to trust it; ends in `found`.
        ///
        /// - Parameter owner: the agent, if known.
        case findAgent(search: Int, owner: String?)
        /// Register; ends in `registered`. The observed names, and what is known of the process, are yet to be filled
        /// in. Indirect, so that the others are small.
        indirect case register(agent: String, AgentInterface.Register)
        /// Confirm the registrations that have waited for the agent, unless they have to wait for it again.
        case confirmRegistrations
        case withdrawRules
        /// Send all rules again; ``rulesAreAsked(_:)`` counts those sent, and each ends in `ruleAnswered`.
        case putRules
        /// Ask the bus something; ends in `barrierPassed`.
        case askBarrier(Int)
        /// The state is in effect.
        case publish(LifecycleState)
        /// The bus has cut the connection off, and what was posted in the meantime is unknown.
        case noteCutOff
        /// Reply to a call of SetState: the change is in effect.
        case answer(Call)
        /// Reply to a call of SetState: names were added that the agent has yet to take note of.
        case postpone(Call)
        /// Reply to a call of Deliver.
        case acknowledge(Call)
        /// Reply to a call by another program than the agent.
        case refuse(Call)
        /// - Parameter asking: if not nil, the agent is to answer; ends in `additionAnswered`.
        case tell(agent: String, Statement, asking: Int? = nil)
        case ask(agent: String, request: Int)
        /// There is no agent to ask, or the connection is lost.
        case fail(request: Int)
        /// Close the connection as if it were lost, and make another.
        case disconnect
        /// Report `deadlinePassed` after this many milliseconds; nil for never. It replaces an earlier one.
        case setDeadline(Int64?)
    }

    /// A call that is to be answered.
    package struct Call: Hashable, Sendable {
        package let sender: String
        package let serial: UInt32
        package let wantsReply: Bool

        package init(sender: String, serial: UInt32, wantsReply: Bool) {
            self.sender = sender
            self.serial = serial
            self.wantsReply = wantsReply
        }
    }

    /// A report to the agent.
    package enum Statement: Hashable, Sendable {
        case observes(names: [String], prefixes: [String])
        case observesNoMore(names: [String], prefixes: [String])
        case followsDesktop(Bool)
    }
}

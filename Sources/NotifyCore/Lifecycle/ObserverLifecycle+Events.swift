// SPDX-License-Identifier: Apache-2.0

// What the observer's half of the lifecycle protocol is told, and what it wants done.
extension ObserverLifecycle {
    package enum Event: Sendable {
        /// The bus has let the connection in. Registrations wait for the agent's word from here on.
        ///
        /// - Parameter wasCutOff: whether the connection takes the place of one that the same bus has closed. Posts made
        ///   meanwhile were missed, unless the agent says that it has them all.
        case connected(uniqueName: String, wasCutOff: Bool = false)
        /// The connection is gone, and with it all that was under way.
        case lost
        /// The answer to `findAgent`: who is the agent, or nil if there is none that this program trusts.
        case found(search: Int, agent: String?)
        /// The answer to `register`; nil if the agent has refused, or is gone.
        case registered(agent: String, AgentInterface.Register.Answer?)
        /// Another connection has the agent's name, or nobody.
        case ownerChanged(String)
        case decided(String, by: String)
        case setState(LifecycleState, Call)
        case deliver([String], Call)
        /// A place in the stream, which the agent wanted to read itself: it has read some of what stood before.
        case marked(by: String)
        /// The bus has answered a rule that was put back.
        case ruleAnswered
        /// The answer to `askBarrier`: all that the bus had routed before has come.
        case barrierPassed(Int)
        case deadlinePassed
        /// The program wants to tell the agent something.
        case says(Statement)
        /// The program wants to ask the agent something; ends in `ask` or `fail`.
        case asks(request: Int)
    }

    package enum Effect: Equatable, Sendable {
        /// Have the bus say when the agent's name passes to somebody else.
        case watchAgent
        /// Find out who is the agent, and whether it is to be trusted; ends in `found`.
        ///
        /// - Parameter owner: who is the agent, if that is known.
        case findAgent(search: Int, owner: String?)
        /// Register; ends in `registered`. What is observed, and what is known of the process, is still to be entered.
        case register(agent: String, AgentInterface.Register)
        /// Confirm the registrations that have waited for the agent's word.
        case confirmRegistrations
        case withdrawRules
        /// Send all rules again; each that is sent is counted by ``rulesAreAsked(_:)`` and ends in `ruleAnswered`.
        case putRules
        /// Ask the bus something; ends in `barrierPassed`.
        case askBarrier(Int)
        /// The state is in force.
        case publish(LifecycleState)
        /// The bus has cut the connection off, and nobody knows what was posted meanwhile.
        case noteCutOff
        /// Answer a call of SetState: the change is in force.
        case answer(Call)
        /// Answer a call of Deliver.
        case acknowledge(Call)
        /// Answer a call of somebody who is not the agent.
        case refuse(Call)
        case tell(agent: String, Statement)
        case ask(agent: String, request: Int)
        /// There is no agent to be asked, or the connection is gone.
        case fail(request: Int)
        /// Close the connection, as if it were lost, and make another.
        case disconnect
        /// Say `deadlinePassed` after so many milliseconds; nil for never. It takes the place of an earlier one.
        case setDeadline(Int64?)
    }

    /// A call that is to be answered.
    package struct Call: Equatable, Sendable {
        package let sender: String
        package let serial: UInt32
        package let wantsReply: Bool

        package init(sender: String, serial: UInt32, wantsReply: Bool) {
            self.sender = sender
            self.serial = serial
            self.wantsReply = wantsReply
        }
    }

    /// What the agent is told, without an answer.
    package enum Statement: Equatable, Sendable {
        case observes(names: [String], prefixes: [String])
        case observesNoMore(names: [String], prefixes: [String])
        case followsDesktop(Bool)
    }
}

// SPDX-License-Identifier: Apache-2.0

/// Whether the lifecycle agent has answered, for messages.
package enum AgentContact: Equatable, Sendable {
    /// There is no connection yet.
    case unknown
    /// It is being looked for, or has been asked to register this program.
    case asked
    case present
    /// There is none; with the reason if the bus knows of one but could not start it, or it refused.
    case absent(reason: String?)
    /// It did not answer in time.
    case silent

    init(_ fault: BusFault) {
        self = .absent(reason: fault.saysGone ? nil : fault.message.isEmpty ? fault.name : fault.message)
    }
}

extension NotifyCenter {
    /// Whether the lifecycle agent has answered.
    package var agentContact: AgentContact { peer?.contact.withLock { $0 } ?? .unknown }

    /// The agent's report about itself.
    package func agentStatus(timeout: Duration = .seconds(2)) throws(AgentError) -> AgentInterface.Status.Answer {
        try askAgent(timeout) { peer, completion in peer.ask(AgentInterface.Status(), then: completion) }
    }
}

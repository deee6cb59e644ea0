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

/// Why the agent did not do what it was asked to do.
package enum AgentError: Error, Sendable {
    /// It was not reached.
    case unreachable(NotifyBusError)
    /// It refused.
    case refused(BusFault)
}

/// Whether the relay that a sandboxed program needs is known not to hear for it.
final class RelayStanding: Sendable {
    private let reason = Monitor<String?>(nil)

    /// Why it does not, as one or two sentences; nil if it does, or that is not known yet.
    var obstacle: String? {
        get { reason.withLock { $0 } }
        set { reason.withLock { $0 = newValue } }
    }
}

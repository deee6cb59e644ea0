// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

extension CommandFailure {
    /// There is no agent to ask, or none that this program could see.
    static func noAgent(on bus: NotifyCenter.Bus?) -> CommandFailure {
        guard (bus ?? .session).isWhole else {
            return CommandFailure(
                "a program in a sandbox can't reach the lifecycle agent; run notify-lifecycle outside",
                code: .unavailable,
                isLasting: true
            )
        }
        return CommandFailure(
            "no lifecycle agent runs on this bus; start one with \(AgentHint.command(for: bus))",
            code: .unavailable,
            isLasting: true
        )
    }

    static let lostBus = CommandFailure(
        "the bus went away before the agent answered",
        code: .unavailable,
        isLasting: true
    )

    static let lateBus = CommandFailure(
        "the bus did not accept the connection in time",
        code: .timedOut,
        isLasting: true
    )

    static func lateAgent(on bus: NotifyCenter.Bus?) -> CommandFailure {
        CommandFailure(
            "the agent did not answer in time\(AgentHint.text(for: bus))",
            code: .timedOut,
            isLasting: true
        )
    }

    /// The agent violated the protocol.
    static func nonsense(_ member: String, _ error: ArgumentError, for target: TargetOrEveryone?) -> CommandFailure {
        let detail =
            switch error {
            case .types(let expected, let given):
                (target.map { "for \($0.title) it has" } ?? "it has") + " the type '\(given)' in place of '\(expected)'"
            case .missing(let key): "an entry has no '\(key)'"
            case .mistyped(let key, _, let given): "the '\(key)' of an entry has the type '\(given)'"
            case .value(let text): text
            }
        return CommandFailure(
            "the agent's answer to \(member) is invalid: \(detail); its version may differ from this command's"
        )
    }

    /// What an error from the agent, or from the bus on its behalf, means to the user of the command.
    ///
    /// - Parameter target: the target of the state change; nil if there was none.
    init(_ fault: BusFault, to member: String, target: TargetOrEveryone? = nil, on bus: NotifyCenter.Bus?) {
        let reason = fault.message.isEmpty ? fault.name : fault.message
        let standard = "org.freedesktop.DBus.Error."
        switch fault.name {
        case _ where fault.saysNoAgent:
            self = .noAgent(on: bus)
        case _ where fault.saysForeignAgent:
            let reason = "the lifecycle agent on this bus is not used: \(fault.message)"
            self.init(reason, code: .unavailable, isLasting: true)
        case _ where fault.saysUnanswered:
            self.init("the agent went away before it answered", code: .unavailable, isLasting: true)
        case _ where fault.isLossOfBus:
            self = .lostBus
        case _ where fault.saysNotStarted:
            let hint = AgentHint.text(for: bus)
            self.init("the bus can't start the agent: \(reason)\(hint)", code: .unavailable, isLasting: true)
        case standard + "AccessDenied":
            if let target {
                self.init("the state of \(target.title) is unchanged: \(reason)")
            } else {
                self.init("permission denied: \(reason)")
            }
        case _ where fault.saysNoTarget:
            self.init("no observer matches \(target?.title ?? "that"); 'notify-lifecycle list' shows all observers")
        case AgentInterface.ErrorName.timedOut:
            self.init("\(target?.title ?? "an observer") did not respond in time: \(reason)", code: .timedOut)
        case standard + "UnknownMethod", standard + "UnknownInterface", standard + "UnknownObject":
            self.init("the agent does not support \(member); its version may differ from this command's")
        default:
            self.init("the agent refused\(target.map { " to change " + $0.title } ?? ""): \(reason)")
        }
    }
}

extension BusFault {
    /// Whether the connection to the bus was lost before the reply.
    var isLossOfBus: Bool { name == "org.freedesktop.DBus.Error.Disconnected" }

    /// Whether the agent has gone without an answer.
    var saysUnanswered: Bool { name == "org.freedesktop.DBus.Error.NoReply" }

    var saysNoAgent: Bool {
        ["org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner"].contains(name)
    }

    var saysNoTarget: Bool { name == AgentInterface.ErrorName.noSuchTarget }

    /// Whether this can be so while one agent takes over from another.
    var isOfTakeover: Bool { saysUnanswered || saysNoAgent || saysNoTarget }
}

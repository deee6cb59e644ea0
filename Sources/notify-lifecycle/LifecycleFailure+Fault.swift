// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

extension LifecycleFailure {
    /// What an error from the agent, or from the bus on its behalf, means to the user of the command.
    ///
    /// - Parameter target: the target of the state change; nil if there was none.
    init(_ fault: BusFault, to member: String, target: Whom? = nil, on bus: NotifyCenter.Bus?) {
        let reason = fault.message.isEmpty ? fault.name : fault.message
        let standard = "org.freedesktop.DBus.Error."
        switch fault.name {
        case _ where fault.saysNoAgent:
            self = .noAgent(on: bus)
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

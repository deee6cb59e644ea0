// SPDX-License-Identifier: Apache-2.0

package import NotifyCore
import NotifyNames

/// What `-v` says about the lifecycle agent: that it did not answer, or which of the names are not posted at present, because
/// of their sources or because there is no agent.
package struct AgentReport {
    private let center: NotifyCenter
    private let bus: NotifyCenter.Bus
    private var hint: String { AgentHint.text(for: bus) }

    package init(_ center: NotifyCenter, _ bus: NotifyCenter.Bus) {
        self.center = center
        self.bus = bus
    }

    /// Nothing if all is well, or if there is no agent and none of the names is an event.
    package func lines(for names: [NotifyName]) -> [String] {
        switch center.agentContact {
        case .asked, .silent: ["the lifecycle agent did not answer; until it does, every post is heard\(hint)"]
        case .absent(let reason): absence(reason, names)
        case .unknown: []
        case .present: obstacles(to: names)
        }
    }

    /// - Parameter reason: why the agent is not used; nil if there is none.
    private func absence(_ reason: String?, _ names: [NotifyName]) -> [String] {
        let events = names.filter { !agentEvents(among: [$0]).isEmpty }.map { "'\($0)'" }
        let list = events.count > 1 ? events.dropLast().joined(separator: ", ") + " and " : ""
        let consequence = events.last.map { list + $0 + (events.count > 1 ? " are not posted" : " is not posted") }
        if let reason {
            let fact = reason.hasSuffix(".") ? String(reason.dropLast()) : reason
            let line = "the lifecycle agent is not used: \(fact)\(hint)"
            return [line] + (consequence.map { ["\($0) without the agent"] } ?? [])
        }
        // In a sandbox it may only be out of sight, which is said anyway.
        guard let consequence, bus.isWhole else { return [] }
        return ["no lifecycle agent runs on this bus, so \(consequence); start one with \(AgentHint.command(for: bus))"]
    }

    /// Which of the names are not posted at present, and why: a line each.
    package func obstacles(to names: [NotifyName]) -> [String] { agentEvents(among: names).compactMap(line) }

    /// The events that the agent posts.
    private func agentEvents(among names: [NotifyName]) -> [SystemEvent] {
        SystemEvent.all.filter { $0.source != nil && names.contains($0.name) }
    }

    /// Why an event is not posted; nil if it is.
    private func line(about event: SystemEvent) -> String? {
        // It answers when the source has reported something, or has not for a second.
        _ = try? center.state(of: event.name, timeout: .seconds(2))
        guard let status = try? center.agentStatus(),
            let value = status.fields.first(where: { $0.key == "events" })?.value,
            let events = try? AgentInterface.EventEntry.entries(in: value)
        else { return nil }
        let source = event.source?.rawValue ?? ""
        guard let entry = events.first(where: { $0.name == event.name.string }) else {
            return "'\(event.name)' is not posted here: the agent does not use its source '\(source)'"
        }
        if entry.isLive { return nil }
        return "'\(event.name)' is not posted at present: its source '\(source)' is off: \(entry.reason)"
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyCore
import NotifyNames

/// What `-v` says about the lifecycle agent: that it did not answer, or which of the names it does not post at present.
package struct AgentReport {
    private let center: NotifyCenter
    private let hint: String

    package init(_ center: NotifyCenter, _ bus: NotifyCenter.Bus) {
        self.center = center
        hint = AgentHint.text(for: bus)
    }

    /// Nothing if all is well, or there is no agent at all.
    package func lines(for names: [NotifyName]) -> [String] {
        switch center.agentContact {
        case .asked, .silent: ["the lifecycle agent did not answer; until it does, every post is heard\(hint)"]
        case .absent(let reason): reason.map { ["the lifecycle agent is not used: \($0)\(hint)"] } ?? []
        case .unknown: []
        case .present: obstacles(to: names)
        }
    }

    /// Which of the names are not posted at present, and why: a line each.
    package func obstacles(to names: [NotifyName]) -> [String] {
        SystemEvent.all.filter { $0.source != nil && names.contains($0.name) }.compactMap(line)
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

// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent
import NotifyCoordinator
import NotifyCore

/// `notify-agent --check`: reads what an agent would read, and reports errors. It does not use a bus.
enum ConfigurationCheck {
    static func run(_ settings: AgentSettings, _ diagnostics: Diagnostics) -> ExitCode {
        var faults = 0
        var lines: [String] = []
        var configuration = Agent.Configuration()
        do throws(ConfigurationError) {
            try configuration.read(settings.configurationFile, for: settings.common.bus)
        } catch {
            configuration.faults.append(error.description)
        }
        NapFile.readDefault(for: settings.common.bus, into: &configuration)
        faults += configuration.faults.count
        lines += configuration.faults
        for file in LaunchFolders(servesMachine: settings.common.bus == .system).read() {
            switch file.content {
            case .success(let entry):
                if let fault = entry.programFault {
                    faults += 1
                    lines.append("\(file.path): \(fault)")
                    continue
                }
                let status = AgentInterface.LaunchStatus(entry)
                let names = status.names + status.prefixes.map { $0 + "*" }
                let more = entry.subjects.names.count + entry.subjects.prefixes.count - names.count
                lines.append(
                    "\(file.path): \(names.joined(separator: ", "))\(more > 0 ? " and \(more) more" : "")"
                        + " → \(status.action) \(status.program)\(entry.isEnabled ? "" : " (enabled = no)")"
                )
                let conditions = entry.conditions.map(\.name)
                let patterns = conditions.filter { $0.string.utf8.reversed().starts(with: "*.".utf8) }
                var mistakes = patterns.map { "'when' takes a name, and \(Printable.quoted($0.string)) is a pattern" }
                mistakes += NameMistake.lines(
                    for: entry.subjects.names.sorted { $0.string < $1.string }
                        + conditions.filter { !patterns.contains($0) }
                )
                let events = SystemEvent.all.filter(\.state.isEmpty).map(\.name)
                for condition in entry.conditions where events.contains(condition.name) {
                    mistakes.append("'\(condition.name)' has no state, so nothing can depend on it")
                }
                lines += mistakes.map { "\(file.path): \($0)" }
            case .failure(let fault):
                faults += 1
                lines.append(fault.text(in: file.path))
            }
        }
        let text = lines.map { Printable.text($0) + "\n" }.joined()
        do throws(CommandFailure) {
            try StandardStreams.print(text)
        } catch {
            return diagnostics.fail(error)
        }
        return faults == 0 ? .done : .failed
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyCoordinator
package import NotifyCore

// Converts what the launcher knows to the protocol.
extension AgentInterface.LaunchStatus {
    /// The status of an entry before anything has happened.
    package init(_ entry: LaunchEntry) {
        self.init()
        name = entry.title
        file = entry.path
        var room = 4_096
        prefixes = AgentInterface.ListEntry.some(of: entry.subjects.prefixes.map(\.string).sorted(), &room)
        names = AgentInterface.ListEntry.some(of: entry.subjects.names.map(\.string).sorted(), &room)
        switch entry.action {
        case .unit(let unit): (action, program) = ("start", unit)
        case .command(let words): (action, program) = ("run", CommandLineText.text(of: words))
        case .activation(let name): (action, program) = ("activate", name)
        }
    }

    init(_ report: Launcher.Report, unit: String) {
        self.init(report.entry)
        self.unit = unit
        state = report.state
        reason = report.reason
        starts = report.starts
        failures = report.failures
        due = UInt32(clamping: report.due)
        result = report.lastResult
    }

    /// A file that can't be used.
    init(_ file: LaunchFolders.File) {
        self.init()
        name = file.title
        self.file = file.path
        state = "broken"
        if case .failure(let fault) = file.content { reason = fault.text(in: file.path) }
    }
}

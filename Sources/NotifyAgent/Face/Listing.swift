// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

// What the coordinator knows, as the protocol shows it.
extension AgentInterface.ListEntry {
    init(_ entry: Coordinator.Entry) {
        self.init()
        name = entry.name
        process = UInt32(entry.process.pid)
        user = entry.user
        program = entry.program
        application = entry.application
        state = entry.state.rawValue
        isParked = entry.isParked
        names = UInt32(entry.subjects.names.count + entry.subjects.prefixes.count)
        pending = UInt32(entry.pending)
        dropped = entry.dropped
        since = entry.since
        decider = entry.decider.name
        hasFocus = entry.hasFocus
    }
}

extension AgentInterface.StatusReport {
    init(_ totals: Coordinator.Totals, _ sources: SourceTable, version: String, since: UInt64) {
        self.init()
        self.version = version
        self.since = since
        process = UInt32(getpid())
        observers = UInt32(totals.observers)
        processes = UInt32(totals.processes)
        foreground = UInt32(totals.foreground)
        background = UInt32(totals.background)
        suspended = UInt32(totals.suspended)
        parked = UInt32(totals.parked)
        held = UInt32(totals.held)
        self.sources = sources.entries.map(AgentInterface.SourceEntry.init)
    }
}

extension AgentInterface.SourceEntry {
    fileprivate init(_ entry: SourceTable.Entry) {
        let (isLive, reason): (Bool, String) =
            switch entry.condition {
            case .live: (true, "")
            case .off(let reason): (false, reason)
            case nil: (false, "has not said anything yet")
            }
        self.init(name: entry.name, isLive: isLive, reason: reason, fact: entry.fact?.text ?? "", facts: entry.count)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

// Converts what the coordinator knows to the protocol.
extension AgentInterface.ListEntry {
    /// How many bytes of names are listed for one connection, and for all of them, so that many names do not make the reply
    /// large.
    private static let roomForNames = 4_096
    fileprivate static let roomForAll = 65_536

    /// - Parameters:
    ///   - caller: the recipient. Only the connection's own user and root see the names.
    ///   - left: how much room there is for names.
    init(_ entry: Coordinator.Entry, for caller: UInt32?, _ left: inout Int) {
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
        guard let caller, caller == 0 || caller == entry.user else { return }
        let before = min(left, AgentInterface.ListEntry.roomForNames)
        var room = before
        defer { left -= before - max(0, room) }
        observedPrefixes = AgentInterface.ListEntry.some(of: entry.subjects.prefixes.lazy.map(\.string), &room)
        observedNames = AgentInterface.ListEntry.some(of: entry.subjects.names.lazy.map(\.string), &room)
    }

    /// As many as there is room for, sorted.
    static func some(of texts: some Sequence<String>, _ room: inout Int) -> [String] {
        var some: [String] = []
        for text in texts {
            // An empty prefix takes up space, too.
            room -= text.utf8.count + 8
            if room < 0 { break }
            some.append(text)
        }
        return some.sorted()
    }
}

extension AgentInterface.List.Answer {
    /// - Parameter caller: the recipient.
    init(_ entries: [Coordinator.Entry], for caller: UInt32?) {
        var left = AgentInterface.ListEntry.roomForAll
        self.init(connections: entries.map { AgentInterface.ListEntry($0, for: caller, &left) })
    }
}

extension AgentInterface.StatusReport {
    init(
        _ totals: Coordinator.Totals,
        _ sources: SourceTable,
        events: [EventTable.Entry],
        wanted: ObservedNames,
        launches: [AgentInterface.LaunchStatus],
        version: String,
        since: UInt64
    ) {
        self.init()
        self.launches = launches
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
        self.events = events.map { event in
            AgentInterface.EventEntry(
                name: event.name.string,
                isLive: event.isLive,
                reason: event.reason,
                wanted: UInt32(clamping: wanted.count(of: event.name)),
                posts: event.posts,
                last: event.last
            )
        }
    }
}

extension AgentInterface.FocusEntry {
    init(_ process: FocusedProcess?, by source: String) {
        self.init(
            process: UInt32(max(0, process?.pid ?? 0)),
            application: process?.application ?? "",
            window: process?.window ?? "",
            source: source
        )
    }
}

extension AgentInterface.SourceEntry {
    fileprivate init(_ entry: SourceTable.Entry) {
        let (isLive, reason): (Bool, String) =
            switch entry.condition {
            case .live: (true, "")
            case .off(let reason): (false, reason)
            case nil: (false, "has not reported anything yet")
            }
        self.init(name: entry.name, isLive: isLive, reason: reason, fact: entry.fact?.text ?? "", facts: entry.count)
    }
}

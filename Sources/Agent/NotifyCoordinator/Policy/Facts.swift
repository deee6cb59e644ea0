// SPDX-License-Identifier: Apache-2.0

/// The complete current report of a source: each fact replaces the previous one.
package enum Fact: Hashable, Sendable {
    /// The processes that have the focus; none if no process has it. It says nothing about processes other than those
    /// that were searched `among`; nil means all processes.
    case focus([FocusedProcess], among: Set<Int32>? = nil)
    /// The login sessions of the machine, and whether it is asleep.
    case logins(Logins)
    /// Whether a screen saver is active. It decides nothing by itself: see ``LoginEvents``.
    case screenSaver(isActive: Bool)
    /// A process was stopped or continued. It decides nothing: such a process is parked.
    case stillness(process: Int32, isStill: Bool)

    /// For display, on one line.
    package var text: String {
        switch self {
        case .focus([], among: nil): "no window has the focus"
        case .focus([], _): "no observer has the focus"
        case .focus(let processes, _): processes.map(\.text).joined(separator: ", ")
        case .logins(let logins): logins.text
        case .screenSaver(let isActive): "a screen saver is \(isActive ? "active" : "idle")"
        case .stillness(let process, let isStill): "process \(process) \(isStill ? "was stopped" : "was continued")"
        }
    }
}

/// A process that has the focus.
package struct FocusedProcess: Hashable, Sendable {
    package let pid: Int32
    /// When it started, as in ``ProcessID``; 0 if unknown.
    package let startTime: UInt64
    /// Those that have started it, directly or not, without having begun another session since, by their numbers; and when
    /// they started.
    package let ancestors: [Int32: UInt64]
    /// Its application; empty if it has none. Other processes of the same application and user share the focus.
    package let application: String
    package let user: UInt32?
    /// What the desktop calls the application of the window; empty if it does not say.
    package let window: String
    package let isFullscreen: Bool
    /// Whether it belongs to the desktop itself.
    package let isOfDesktop: Bool

    package init(
        pid: Int32,
        startTime: UInt64 = 0,
        ancestors: [Int32: UInt64] = [:],
        application: String,
        user: UInt32?,
        window: String = "",
        isFullscreen: Bool = false,
        isOfDesktop: Bool = false
    ) {
        (self.pid, self.startTime, self.ancestors) = (pid, startTime, ancestors)
        (self.application, self.user) = (application, user)
        (self.window, self.isFullscreen, self.isOfDesktop) = (window, isFullscreen, isOfDesktop)
    }

    /// nil if the user of the process is unknown.
    var id: ProcessID? { user.map { ProcessID(pid: pid, startTime: startTime, user: $0) } }

    /// Whether a process has the focus with this one.
    package func includes(pid: Int32, application: String, user: UInt32) -> Bool {
        pid == self.pid || !application.isEmpty && application == self.application && user == self.user
    }

    /// Whether it is of a program, or would be stopped with it.
    func belongs(to program: NapProgram) -> Bool {
        if program.pid == 0 { return application == program.application && user == program.user }
        return pid == program.pid && startTime == program.startTime || ancestors[program.pid] == program.startTime
    }

    var text: String { "process \(pid)" + (application.isEmpty ? "" : " (\(application))") }
}

/// The status of a source.
package enum SourceCondition: Hashable, Sendable {
    case live
    /// Not available, for this reason.
    case off(String)
}

/// What a source has found since it was last asked: only the newest.
package struct SourceNews: Sendable {
    package var condition: SourceCondition?
    package var fact: Fact?
    /// How many facts came, including replaced ones.
    package var count: UInt64 = 0

    package init() {}
}

/// What the agent knows from its sources.
package struct SourceTable: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package let name: String
        /// nil until the source has reported whether it is live.
        package var condition: SourceCondition?
        package var fact: Fact?
        package var count: UInt64 = 0

        /// Its current report: a source that is not live reports nothing.
        var current: Fact? { condition == .live ? fact : nil }
    }

    package private(set) var entries: [Entry]

    package init(_ names: [String]) {
        entries = names.map { Entry(name: $0) }
    }

    package func contains(_ name: String) -> Bool { entries.contains { $0.name == name } }

    package mutating func set(_ condition: SourceCondition, of name: String) {
        change(name) { entry in entry.condition = condition }
    }

    package mutating func note(_ fact: Fact, from name: String) {
        change(name) { entry in
            entry.fact = fact
            entry.count += 1
        }
    }

    /// - Returns: the facts that have changed.
    package mutating func note(_ news: [String: SourceNews]) -> [(source: String, fact: Fact)] {
        var changes: [(source: String, fact: Fact)] = []
        for index in entries.indices {
            guard let news = news[entries[index].name] else { continue }
            if let condition = news.condition {
                entries[index].condition = condition
                if condition != .live { entries[index].fact = nil }
            }
            entries[index].count += news.count
            if let fact = news.fact, fact != entries[index].fact {
                // Changes that make no difference for display are reported only to programs.
                let isShown = entries[index].fact.map { $0.text != fact.text } ?? true
                if isShown { changes.append((entries[index].name, fact)) }
                entries[index].fact = fact
            }
        }
        return changes
    }

    private mutating func change(_ name: String, _ change: (inout Entry) -> Void) {
        guard let index = entries.firstIndex(where: { $0.name == name }) else { return }
        change(&entries[index])
    }

    /// The earlier report of a source no longer counts; it is about to report again, or has been stopped.
    package mutating func reset(_ name: String, _ condition: SourceCondition?) {
        change(name) { entry in
            entry.condition = condition
            entry.fact = nil
        }
    }

    /// Whether a source has reported anything, or never will.
    package func isSettled(_ name: String) -> Bool {
        guard let entry = entries.first(where: { $0.name == name }) else { return true }
        switch entry.condition {
        case nil: return false
        case .live: return entry.fact != nil
        case .off: return true
        }
    }

    // MARK: - Results

    /// The source that reports that the machine is going to sleep, if any.
    package var sleep: String? { source { $0.isAsleep } }

    /// The source that reports that the session of a process is inactive or locked, if any.
    package func absence(user: UInt32, session: String?) -> String? {
        source { $0.areAway(from: user, session: session) }
    }

    private func source(_ saysSo: (Logins) -> Bool) -> String? {
        entries.first { entry in
            guard case .logins(let logins) = entry.current else { return false }
            return saysSo(logins)
        }?.name
    }

    /// All processes that have the focus, by the word of any source; nil if no source knows about the focus.
    package var focused: [FocusedProcess]? {
        var all: [FocusedProcess]?
        for case .focus(let processes, _) in entries.lazy.compactMap(\.current) { all = (all ?? []) + processes }
        return all
    }

    /// The process that has the focus, and the source that reports that. A source that sees every window counts before
    /// one that looks only at some programs.
    ///
    /// - Returns: nil if no source knows about the focus; no process if none has it.
    package var foremost: (process: FocusedProcess?, source: String)? {
        let known = entries.compactMap { entry -> (process: FocusedProcess?, source: String, seesAll: Bool)? in
            guard case .focus(let processes, let among) = entry.current else { return nil }
            return (processes.first, entry.name, among == nil)
        }
        guard let best = known.first(where: \.seesAll) ?? known.first(where: { $0.process != nil }) ?? known.first
        else {
            return nil
        }
        return (best.process, best.source)
    }

    /// Whether a process has the focus, and the source that reports that; nil if no source knows about the focus.
    ///
    /// With several sources, it is enough if one sees it in front.
    package func focus(pid: Int32, application: String, user: UInt32) -> (hasIt: Bool, source: String)? {
        var other: String?
        for entry in entries {
            guard case .focus(let processes, let among) = entry.current, among?.contains(pid) ?? true else { continue }
            if processes.contains(where: { $0.includes(pid: pid, application: application, user: user) }) {
                return (true, entry.name)
            }
            other = other ?? entry.name
        }
        return other.map { (false, $0) }
    }
}

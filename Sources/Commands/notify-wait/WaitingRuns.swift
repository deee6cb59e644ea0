// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A run of the command that is due or active.
struct Run {
    /// The names that it is for, each once, in the order in which they first came.
    private(set) var names: [NotifyName]
    /// The latest name; nil for a heartbeat.
    private(set) var name: NotifyName?
    /// The value of `$NOTIFY_COUNT`.
    private(set) var count: Int
    /// The same names, once another run was added.
    private var known: Set<NotifyName> = []

    init(_ names: [NotifyName], last: NotifyName, count: Int) {
        self.names = names
        name = last
        self.count = count
    }

    /// The run for a heartbeat.
    init(heartbeatAfter count: Int) { (names, name, self.count) = ([], nil, count) }

    /// What it is for, for a message.
    var subject: String { name.map { "'\($0)'" } ?? "the heartbeat" }

    /// Makes this one run for a later one too.
    ///
    /// - Returns: whether there was room for all of its names.
    mutating func add(_ later: Run) -> Bool {
        name = later.name
        count += later.count
        if known.isEmpty { known = Set(names) }
        for name in later.names where !known.contains(name) {
            if names.count >= WaitingRuns.limit { return false }
            known.insert(name)
            names.append(name)
        }
        return true
    }
}

/// The runs that are due once the active one has exited.
struct WaitingRuns {
    /// Which of them are combined.
    enum Coalescing {
        /// None: one run per notification.
        case none
        /// Those for the same name: its last change is seen by a run that starts after it, whatever came before.
        case sameName
        /// All: with `--settle` one run is for all names that came.
        case all
    }

    /// How many runs may be due, and names in them. More would be of no use, and the queue must not grow without bound.
    static let limit = 65_536

    private let coalescing: Coalescing
    private var runs: ArraySlice<Run> = []
    /// For `sameName`: the index of the run for a name among all that were ever due.
    private var positions: [NotifyName?: Int] = [:]
    private var taken = 0
    /// How many names the runs have together.
    private var size = 0

    init(_ coalescing: Coalescing) {
        self.coalescing = coalescing
    }

    /// - Returns: whether there was room for it.
    mutating func add(_ run: Run) -> Bool {
        switch coalescing {
        case .none: break
        case .all:
            if !runs.isEmpty { return runs[runs.startIndex].add(run) }
        case .sameName:
            if let position = positions[run.name] {
                runs[runs.startIndex + position - taken] = run
                return true
            }
        }
        guard size < WaitingRuns.limit else { return false }
        if case .sameName = coalescing { positions[run.name] = taken + runs.count }
        size += run.names.count
        runs.append(run)
        return true
    }

    mutating func popFirst() -> Run? {
        guard let run = runs.popFirst() else { return nil }
        if case .sameName = coalescing { positions[run.name] = nil }
        taken += 1
        size = runs.isEmpty ? 0 : size - run.names.count
        return run
    }

    mutating func removeAll() {
        self = WaitingRuns(coalescing)
    }
}

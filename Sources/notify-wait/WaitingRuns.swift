// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A run of the command that is due or active.
struct Run {
    /// The names that it is for, each once, in the order in which they first came.
    private(set) var names: [NotifyName]
    /// The latest name.
    let name: NotifyName
    /// The value of `$NOTIFY_COUNT`.
    var count: Int

    init(_ names: [NotifyName], last: NotifyName, count: Int) {
        self.names = names
        name = last
        self.count = count
    }

    /// Absorbs the names of an earlier run that has not started.
    mutating func absorb(_ earlier: Run) {
        let known = Set(earlier.names)
        names = earlier.names + names.filter { !known.contains($0) }
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

    /// Nobody can want more than this, and it must not grow without bound.
    static let limit = 65_536

    private let coalescing: Coalescing
    private var runs: ArraySlice<Run> = []
    /// For `sameName`: the index of the run for a name among all that were ever due.
    private var positions: [NotifyName: Int] = [:]
    private var taken = 0

    init(_ coalescing: Coalescing) {
        self.coalescing = coalescing
    }

    /// - Returns: whether there was room for it.
    mutating func add(_ run: Run) -> Bool {
        switch coalescing {
        case .none: break
        case .all:
            if let waiting = runs.first {
                var coalesced = run
                coalesced.absorb(waiting)
                coalesced.count += waiting.count
                runs = [coalesced]
                return true
            }
        case .sameName:
            if let position = positions[run.name] {
                runs[runs.startIndex + position - taken] = run
                return true
            }
        }
        guard runs.count < WaitingRuns.limit else { return false }
        if case .sameName = coalescing { positions[run.name] = taken + runs.count }
        runs.append(run)
        return true
    }

    mutating func popFirst() -> Run? {
        guard let run = runs.popFirst() else { return nil }
        if case .sameName = coalescing { positions[run.name] = nil }
        taken += 1
        return run
    }

    mutating func removeAll() {
        self = WaitingRuns(coalescing)
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A run of the command that is due, or goes on.
struct Run {
    /// The names that it is for, each once, in the order in which they came first.
    private(set) var names: [NotifyName]
    /// The name that came last.
    let name: NotifyName
    /// What it says in `$NOTIFY_COUNT`.
    var count: Int

    init(_ names: [NotifyName], last: NotifyName, count: Int) {
        self.names = names
        name = last
        self.count = count
    }

    /// Takes in the names of an earlier run, which has not begun.
    mutating func absorb(_ earlier: Run) {
        let known = Set(earlier.names)
        names = earlier.names + names.filter { !known.contains($0) }
    }
}

/// The runs that wait until the one that goes on has ended.
struct WaitingRuns {
    /// Which of them stand for each other.
    enum Coalescing {
        /// None: a run for each notification.
        case none
        /// Those for one name: the last change of it is seen by a run that begins after it, whatever came before.
        case sameName
        /// All: with `--settle` a run is for all names that came.
        case all
    }

    /// More than this nobody can want, and it must not grow without bound.
    static let limit = 65_536

    private let coalescing: Coalescing
    private var runs: ArraySlice<Run> = []
    /// For `sameName`: the place of the run for a name among all that ever waited.
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

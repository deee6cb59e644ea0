// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What an agent knows of an entry and its successor would learn from no one else.
package struct LaunchHeritage: Equatable, Sendable {
    /// How many names are handed over at most, of all entries.
    private static let maximumNames = 262_144

    package var title: String
    package var action: LaunchEntry.Action
    /// Posted, and nothing was started for it yet.
    package var due: [NotifyName] = []
    /// Posted since the program was started, which has yet to be told of it.
    package var missed: [NotifyName] = []
    /// What the program hears by itself while it runs.
    package var heard = Subjects()
    /// When it was started, as far as relevant to the limit.
    package var recentStarts: [Int64] = []

    package init(title: String, action: LaunchEntry.Action) {
        self.title = title
        self.action = action
    }

    /// Whether there is nothing to know.
    package var isEmpty: Bool { due.isEmpty && missed.isEmpty && heard.isEmpty && recentStarts.isEmpty }

    /// Drops names if there are too many. An entry of which one is left is started all the same; and if it is forgotten that
    /// a program hears a name, that starts it once too often.
    fileprivate func limited(amongst count: Int) -> LaunchHeritage {
        var result = self
        let share = max(1, LaunchHeritage.maximumNames / max(1, count))
        (result.due, result.missed) = (Array(due.prefix(share)), Array(missed.prefix(share)))
        result.heard = Subjects(names: Set(heard.names.prefix(share)), prefixes: Set(heard.prefixes.prefix(share)))
        return result
    }
}

/// A post whose sender the bus was still being asked for.
package struct UnidentifiedPost: Hashable, Sendable {
    package let name: NotifyName
    package let sender: String

    package init(_ name: NotifyName, from sender: String) { (self.name, self.sender) = (name, sender) }
}

// How a successor gets what this agent knows.
extension Launcher {
    /// What is to be handed over now.
    package var heritage: [LaunchHeritage] {
        let all = launches.values.sorted { $0.entry.title < $1.entry.title }
        return all.compactMap { launch in
            let heritage = launch.heritage.limited(amongst: all.count)
            // That there is a service manager is worth knowing: if it is away, its entries wait for it.
            let isWorthIt = !heritage.isEmpty || launch.entry.runsByManager && hasManager
            return isWorthIt ? heritage : nil
        }
    }

    /// Whether what was started is known to run, so that the next agent will know it as well, and that no start may have to be
    /// tried again.
    package var isAtRest: Bool { launches.values.allSatisfy(\.isAtRest) }

    /// Whether it is not known yet of some entry whether its program runs, or not all of its names are heard.
    package var hasWaking: Bool { launches.keys.contains(where: isWaking) }
}

// What the next agent is told.
extension Launch {
    /// What the program hears by itself.
    private var heard: Subjects {
        Subjects(
            names: entry.subjects.names.filter { heardBefore.contains($0) || observers.hear($0) },
            prefixes: entry.subjects.prefixes.filter { heardBefore.prefixes.contains($0) || observers.hear($0) }
        )
    }

    /// What connections of the program are yet to be notified of.
    private var lateNames: [NotifyName] {
        var observers = observers
        return observers.takeLate()
    }

    /// What the next agent gets. A start that the service manager has not accepted is due again.
    var heritage: LaunchHeritage {
        var heritage = LaunchHeritage(title: entry.title, action: entry.action)
        if case .off = phase { return heritage }
        var starts = recentStarts[...]
        if !isStartAccepted {
            heritage.due = begun
            starts = starts.dropLast()
        }
        heritage.due += due.names.filter { !heritage.due.contains($0) }
        if isBusy || phase == .waking {
            var missed = missed
            for name in lateNames { _ = missed.insert(name) }
            heritage.missed = missed.names
        }
        heritage.heard = heard
        heritage.recentStarts = Array(starts.suffix(entry.limit.starts))
        return heritage
    }

    /// Whether the program is known to run if its start was requested.
    fileprivate var isAtRest: Bool {
        guard case .starting = phase else { return true }
        // Its start is over as soon as it runs, and may have to be tried again until then. That of a service may take as long
        // as the program.
        if case .command = entry.action { return false }
        return isActive == true && !isReplacing
    }
}

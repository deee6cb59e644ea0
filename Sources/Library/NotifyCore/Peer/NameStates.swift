// SPDX-License-Identifier: Apache-2.0

/// The states of names that this center has set, or has been asked to remember, to be reported to the next agent.
final class NameStates: Sendable {
    struct Entry {
        let value: UInt64
        /// When the agent accepted it, in nanoseconds of its monotonic clock: of two, the later one wins.
        let stamp: UInt64
    }

    private struct Contents {
        var entries: [NotifyName: Entry] = [:]
    }

    private let contents = Monitor(Contents())

    func note(_ entry: Entry, of name: NotifyName) {
        contents.withLock { contents in
            if let known = contents.entries[name], known.stamp > entry.stamp { return }
            contents.entries[name] = entry
        }
    }

    func forget(_ name: NotifyName) {
        contents.withLock { $0.entries[name] = nil }
    }

    /// These are not observed any more.
    func forget(_ names: [String]) {
        contents.withLock { contents in
            if contents.entries.isEmpty { return }
            for name in names.compactMap({ try? NotifyName($0) }) { contents.entries[name] = nil }
        }
    }

    /// The argument for the agent's method `Register`.
    var entriesToRegister: [AgentInterface.NameStateEntry] {
        contents.withLock { contents in
            contents.entries.map { name, entry in
                AgentInterface.NameStateEntry(name: name.string, number: entry.value, stamp: entry.stamp)
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

/// The states of names that this center has set and the agent keeps, to be told to the next agent.
final class NameStates: Sendable {
    struct Entry {
        let value: UInt64
        /// When the agent took it, in nanoseconds of its monotonic clock: of two, the later one counts.
        let stamp: UInt64
    }

    private let entries = Monitor<[NotifyName: Entry]>([:])

    func note(_ entry: Entry, of name: NotifyName) {
        entries.withLock { $0[name] = entry }
    }

    func forget(_ name: NotifyName) {
        entries.withLock { $0[name] = nil }
    }

    /// What the agent's method `Register` is told.
    var entriesToRegister: [AgentInterface.NameStateEntry] {
        entries.withLock { entries in
            entries.map { name, entry in
                AgentInterface.NameStateEntry(name: name.string, number: entry.value, stamp: entry.stamp)
            }
        }
    }
}

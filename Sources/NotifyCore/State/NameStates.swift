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

    /// The option `states` of the agent's method `Register`; nil when there are none.
    var registrationOption: BusValue? {
        entries.withLock { entries in
            if entries.isEmpty { return nil }
            return .array(
                element: "(stt)",
                entries.map { name, entry in
                    .structure([.string(name.string), .uint64(entry.value), .uint64(entry.stamp)])
                }
            )
        }
    }
}

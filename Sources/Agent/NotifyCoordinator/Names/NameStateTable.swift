// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The states that programs have set for names.
package struct NameStateTable: Hashable {
    package struct Entry: Hashable, Sendable {
        package var value: UInt64
        /// When it was set, in nanoseconds since boot. An observer reports that along with it to the next agent.
        package var stamp: UInt64

        package init(value: UInt64, stamp: UInt64) {
            self.value = value
            self.stamp = stamp
        }
    }

    private var entries: [NotifyName: Entry] = [:]
    private var lastStamp: UInt64 = 0
    /// Names whose state the agent before this one has handed over: their observers may have yet to register.
    private var handedOver: Set<NotifyName> = []
    /// Names whose state is kept permanently, and their initial states.
    private let pinned: [NotifyName: UInt64]

    init(pinned: [NotifyName: UInt64] = [:]) { self.pinned = pinned }

    /// What was set, in a definite order.
    var all: [(name: NotifyName, entry: Entry)] {
        entries.sorted { $0.value.stamp < $1.value.stamp }.map { ($0.key, $0.value) }
    }

    var isEmpty: Bool { entries.isEmpty }

    func entry(of name: NotifyName) -> Entry? { entries[name] }

    /// Those of these names that have one.
    func known(among names: Set<NotifyName>) -> [NotifyName] {
        entries.count < names.count ? entries.keys.filter(names.contains) : names.filter { entries[$0] != nil }
    }

    func isPinned(_ name: NotifyName) -> Bool { pinned[name] != nil }

    /// Whether those that observe the name, as the agent before this one knew, may have yet to register.
    func isHandedOver(_ name: NotifyName) -> Bool { handedOver.contains(name) }

    subscript(name: NotifyName) -> UInt64 { entries[name]?.value ?? pinned[name] ?? 0 }

    /// Sets a state now.
    ///
    /// - Returns: the stamp, which is unique.
    mutating func set(_ value: UInt64, of name: NotifyName, now: UInt64) -> UInt64 {
        lastStamp = max(now, lastStamp + 1)
        entries[name] = Entry(value: value, stamp: lastStamp)
        return lastStamp
    }

    /// Takes over what was set earlier, unless a newer state is known. Nothing can have been set in the future.
    mutating func restore(_ entry: Entry, of name: NotifyName, now: UInt64) {
        let stamp = min(entry.stamp, now)
        if let known = entries[name], known.stamp >= stamp { return }
        entries[name] = Entry(value: entry.value, stamp: stamp)
    }

    /// Takes over what the agent before this one knew, and keeps it until the observers have registered.
    mutating func inherit(_ entry: Entry, of name: NotifyName, now: UInt64) {
        restore(entry, of: name, now: now)
        handedOver.insert(name)
    }

    /// All observers have registered: forgets the state of every name that is not observed.
    mutating func forgetAll(unless isObserved: (NotifyName) -> Bool) {
        handedOver = []
        for name in entries.keys where pinned[name] == nil && !isObserved(name) { entries[name] = nil }
    }

    /// Forgets the states of those of these names that are not observed.
    mutating func forget(_ names: Set<NotifyName>, unless isObserved: (NotifyName) -> Bool) {
        for name in known(among: names)
        where pinned[name] == nil && !handedOver.contains(name) && !isObserved(name) { entries[name] = nil }
    }
}

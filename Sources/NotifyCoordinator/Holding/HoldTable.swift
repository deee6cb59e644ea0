// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Which names are held for whom. The rule of a name is shared by all of them.
struct HoldTable: Hashable {
    /// The status of a name's rule.
    enum Rule: Hashable {
        /// It is not on the bus: every holder of the name has its bit set, and another post would be no news.
        case none
        /// The bus has yet to confirm it.
        case asked(Ticket)
        case stands
    }

    private enum Holders: Hashable {
        case one(ConnectionID)
        case many(Set<ConnectionID>)
    }

    private struct Entry: Hashable {
        var holders: Holders
        var rule: Rule
    }

    private var names: [NotifyName: Entry] = [:]
    private var prefixes = PrefixIndex<Set<ConnectionID>>()

    /// How many names and prefixes are held.
    var count: Int { names.count + prefixes.count }
    var prefixCount: Int { prefixes.count }
    var allPrefixes: [NamePrefix] { prefixes.prefixes }

    func holds(prefix: NamePrefix) -> Bool { prefixes[prefix] != nil }
    func rule(of name: NotifyName) -> Rule? { names[name]?.rule }

    /// - Returns: the previous status of its rule; nil if nobody held the name.
    mutating func add(_ holder: ConnectionID, _ name: NotifyName) -> Rule? {
        guard let entry = names[name] else {
            names[name] = Entry(holders: .one(holder), rule: .none)
            return nil
        }
        switch entry.holders {
        case .one(let other): if other != holder { names[name]?.holders = .many([other, holder]) }
        case .many(var all):
            // Taken out of the table first, so that the set is not copied.
            names[name]?.holders = .one(holder)
            all.insert(holder)
            names[name]?.holders = .many(all)
        }
        return entry.rule
    }

    mutating func set(_ rule: Rule, of name: NotifyName) { names[name]?.rule = rule }

    /// - Returns: the status of the name's rule, if nobody holds it any more.
    mutating func remove(_ holder: ConnectionID, _ name: NotifyName) -> Rule? {
        guard let entry = names[name] else { return nil }
        switch entry.holders {
        case .one(holder):
            names[name] = nil
            return entry.rule
        case .one: return nil
        case .many(var all):
            names[name]?.holders = .one(holder)
            all.remove(holder)
            names[name]?.holders = all.count == 1 ? .one(all.first ?? holder) : .many(all)
            return nil
        }
    }

    /// Forgets a name whose rule the bus has refused.
    ///
    /// - Returns: its holders.
    mutating func drop(_ name: NotifyName) -> [ConnectionID] {
        switch names.removeValue(forKey: name)?.holders {
        case nil: []
        case .one(let holder): [holder]
        case .many(let all): Array(all)
        }
    }

    /// - Returns: whether nobody held the prefix.
    mutating func add(_ holder: ConnectionID, prefix: NamePrefix) -> Bool {
        guard var all = prefixes[prefix] else {
            prefixes[prefix] = [holder]
            return true
        }
        all.insert(holder)
        prefixes[prefix] = all
        return false
    }

    /// - Returns: whether nobody holds the prefix any more.
    mutating func remove(_ holder: ConnectionID, prefix: NamePrefix) -> Bool {
        guard var all = prefixes[prefix], all.remove(holder) != nil else { return false }
        prefixes[prefix] = all.isEmpty ? nil : all
        return all.isEmpty
    }

    mutating func drop(prefix: NamePrefix) -> [ConnectionID] {
        defer { prefixes[prefix] = nil }
        return Array(prefixes[prefix] ?? [])
    }

    /// The holders for whom a post of the name is kept. One that holds two matching prefixes appears twice.
    func holders(of name: NotifyName) -> (byName: [ConnectionID], byPrefix: [(NamePrefix, ConnectionID)]) {
        var byPrefix: [(NamePrefix, ConnectionID)] = []
        prefixes.forEachPrefix(of: name) { prefix, holders in
            for holder in holders { byPrefix.append((prefix, holder)) }
        }
        let byName: [ConnectionID] =
            switch names[name]?.holders {
            case nil: []
            case .one(let holder): [holder]
            case .many(let all): Array(all)
            }
        return (byName, byPrefix)
    }

    /// Releases memory that is no longer needed.
    mutating func compact() {
        if names.isEmpty {
            names = [:]
        } else if names.capacity > 4 * names.count + 64 {
            names = names.filter { _ in true }
        }
    }
}

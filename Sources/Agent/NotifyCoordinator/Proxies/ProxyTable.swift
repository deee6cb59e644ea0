// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Which names are subscribed to for whom. The rule of a name is shared by all of them.
struct ProxyTable: Hashable {
    /// The status of a name's rule.
    enum Rule: Hashable {
        /// It is not on the bus: every subscriber of the name has its bit set, and another post would be no news.
        case none
        /// The bus has yet to confirm it.
        case asked(Ticket)
        case stands
    }

    private enum Subscribers: Hashable {
        case one(ConnectionID)
        case many(Set<ConnectionID>)
    }

    private struct Entry: Hashable {
        var subscribers: Subscribers
        var rule: Rule
    }

    private var names: [NotifyName: Entry] = [:]
    private var prefixes = PrefixIndex<Set<ConnectionID>>()

    /// How many names and prefixes are subscribed to.
    var count: Int { names.count + prefixes.count }
    var prefixCount: Int { prefixes.count }
    var allPrefixes: [NamePrefix] { prefixes.prefixes }

    func contains(prefix: NamePrefix) -> Bool { prefixes[prefix] != nil }
    func rule(of name: NotifyName) -> Rule? { names[name]?.rule }

    /// - Returns: the previous status of its rule; nil if the name had no subscriber.
    mutating func add(_ subscriber: ConnectionID, _ name: NotifyName) -> Rule? {
        guard let entry = names[name] else {
            names[name] = Entry(subscribers: .one(subscriber), rule: .none)
            return nil
        }
        switch entry.subscribers {
        case .one(let other): if other != subscriber { names[name]?.subscribers = .many([other, subscriber]) }
        case .many(var all):
            // Taken out of the table first, so that the set is not copied.
            names[name]?.subscribers = .one(subscriber)
            all.insert(subscriber)
            names[name]?.subscribers = .many(all)
        }
        return entry.rule
    }

    mutating func set(_ rule: Rule, of name: NotifyName) { names[name]?.rule = rule }

    /// - Returns: the status of the name's rule, if it has no subscriber any more.
    mutating func remove(_ subscriber: ConnectionID, _ name: NotifyName) -> Rule? {
        guard let entry = names[name] else { return nil }
        switch entry.subscribers {
        case .one(subscriber):
            names[name] = nil
            return entry.rule
        case .one: return nil
        case .many(var all):
            names[name]?.subscribers = .one(subscriber)
            all.remove(subscriber)
            names[name]?.subscribers = all.count == 1 ? .one(all.first ?? subscriber) : .many(all)
            return nil
        }
    }

    /// Forgets a name whose rule the bus has refused.
    ///
    /// - Returns: its subscribers.
    mutating func drop(_ name: NotifyName) -> [ConnectionID] {
        switch names.removeValue(forKey: name)?.subscribers {
        case nil: []
        case .one(let subscriber): [subscriber]
        case .many(let all): Array(all)
        }
    }

    /// - Returns: whether the prefix had no subscriber.
    mutating func add(_ subscriber: ConnectionID, prefix: NamePrefix) -> Bool {
        guard var all = prefixes[prefix] else {
            prefixes[prefix] = [subscriber]
            return true
        }
        all.insert(subscriber)
        prefixes[prefix] = all
        return false
    }

    /// - Returns: whether the prefix has no subscriber any more.
    mutating func remove(_ subscriber: ConnectionID, prefix: NamePrefix) -> Bool {
        guard var all = prefixes[prefix], all.remove(subscriber) != nil else { return false }
        prefixes[prefix] = all.isEmpty ? nil : all
        return all.isEmpty
    }

    mutating func drop(prefix: NamePrefix) -> [ConnectionID] {
        defer { prefixes[prefix] = nil }
        return Array(prefixes[prefix] ?? [])
    }

    /// The subscribers for whom a post of the name is kept. One that subscribes to two matching prefixes appears twice.
    func subscribers(of name: NotifyName) -> (byName: [ConnectionID], byPrefix: [(NamePrefix, ConnectionID)]) {
        var byPrefix: [(NamePrefix, ConnectionID)] = []
        prefixes.forEachPrefix(of: name) { prefix, subscribers in
            for subscriber in subscribers { byPrefix.append((prefix, subscriber)) }
        }
        let byName: [ConnectionID] =
            switch names[name]?.subscribers {
            case nil: []
            case .one(let subscriber): [subscriber]
            case .many(let all): Array(all)
            }
        return (byName, byPrefix)
    }

    /// A subscriber takes the place of another that subscribes to these.
    mutating func replace(_ previous: ConnectionID, by subscriber: ConnectionID, _ subjects: Subjects) {
        // Added first: a name that has a subscriber keeps its rule.
        for name in subjects.names {
            _ = add(subscriber, name)
            _ = remove(previous, name)
        }
        for prefix in subjects.prefixes {
            _ = add(subscriber, prefix: prefix)
            _ = remove(previous, prefix: prefix)
        }
    }

    /// Releases memory when there are no subscribers.
    mutating func compact() { names = [:] }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The rules for subscribed prefixes: one for each while they are few, and one for all names when they are many. A bus checks
/// each rule of a prefix for each post; the coordinator's own work does not grow with them.
struct PrefixRules: Hashable {
    /// Up to this many prefixes have a rule each; beyond that there is one rule for all, until they are only half as
    /// many.
    package static let limit = 128

    enum Addition: Equatable {
        /// Its rule is in place.
        case nothing
        /// These are to be requested.
        case ask([NamePrefix])
        /// Its rule has been requested.
        case wait(Ticket)
    }

    private enum Wide: Hashable {
        case no
        case asked(Ticket)
        case stands
        /// Rules for each prefix have been requested, and replace it once the bus has them.
        case leaving(Ticket)
    }

    /// The prefix of every name.
    private static let all = NamePrefix("")

    private let limit: Int
    private var wide = Wide.no
    /// Those that have a rule of their own, or wait for one.
    private var single: [NamePrefix: Ticket?] = [:]

    init(limit: Int) { self.limit = limit }

    private func mustBeWide(_ table: borrowing ProxyTable) -> Bool {
        table.prefixCount > limit || table.contains(prefix: PrefixRules.all)
    }

    /// The table has accepted a prefix.
    ///
    /// - Parameter isNew: whether it had no subscriber before.
    mutating func add(_ prefix: NamePrefix, isNew: Bool, _ table: borrowing ProxyTable, _ ticket: Ticket) -> Addition {
        switch wide {
        case .stands: return .nothing
        case .asked(let other): return .wait(other)
        case .leaving:
            guard mustBeWide(table) else { break }
            wide = .stands
            return .nothing
        case .no:
            guard mustBeWide(table) else { break }
            wide = .asked(ticket)
            return .ask([PrefixRules.all])
        }
        guard isNew, single[prefix] == nil else {
            if case .some(.some(let other)) = single[prefix] { return .wait(other) }
            return .nothing
        }
        single[prefix] = .some(ticket)
        return .ask([prefix])
    }

    /// A prefix has no subscriber any more, and is no longer in the table.
    mutating func remove(
        _ prefix: NamePrefix,
        _ table: borrowing ProxyTable,
        _ ticket: Ticket
    ) -> (ask: [NamePrefix], release: [NamePrefix]) {
        let own = single.removeValue(forKey: prefix) == nil ? [] : [prefix]
        guard wide == .stands, areFew(table) else { return ([], own) }
        let change = replaceWide(table, ticket)
        return (change.ask, own + change.release)
    }

    /// Whether the rule for all is no longer to stand.
    private func areFew(_ table: borrowing ProxyTable) -> Bool {
        table.prefixCount <= limit / 2 && !table.contains(prefix: PrefixRules.all)
    }

    /// Few prefixes are left, and the rule for all stands: each of them is to have a rule instead.
    mutating func replaceWide(
        _ table: borrowing ProxyTable,
        _ ticket: Ticket
    ) -> (ask: [NamePrefix], release: [NamePrefix]) {
        let ask = table.allPrefixes.filter { single[$0] == nil }
        if ask.isEmpty { return ([], narrow()) }
        for prefix in ask { single[prefix] = .some(ticket) }
        wide = .leaving(ticket)
        return (ask, [])
    }

    /// The rule for all goes when the bus has confirmed every rule that replaces it.
    private mutating func narrow() -> [NamePrefix] {
        guard let last = single.values.compactMap({ $0 }).max() else {
            wide = .no
            return [PrefixRules.all]
        }
        wide = .leaving(last)
        return []
    }

    /// The bus has what was requested, or what it has refused is not needed any more.
    ///
    /// - Returns: the prefixes whose rules are no longer needed, and whether the rule for all has come too late, so that it is
    ///   to be replaced.
    mutating func confirmed(
        _ ticket: Ticket,
        _ table: borrowing ProxyTable
    ) -> (superfluous: [NamePrefix], isTooWide: Bool) {
        for (prefix, asked) in single where asked == ticket { single[prefix] = .some(nil) }
        switch wide {
        case .asked(ticket):
            wide = .stands
            if areFew(table) { return ([], true) }
            defer { single = [:] }
            return (Array(single.keys), false)
        case .leaving(ticket): return (narrow(), false)
        default: return ([], false)
        }
    }

    /// The bus has refused what was requested.
    ///
    /// - Returns: the prefixes that are not heard.
    mutating func refused(_ ticket: Ticket, _ table: borrowing ProxyTable) -> [NamePrefix] {
        let lost = single.filter { $0.value == ticket }.map(\.key)
        for prefix in lost { single[prefix] = nil }
        switch wide {
        case .asked(ticket):
            wide = .no
            return table.allPrefixes.filter { single[$0] == nil }
        case .leaving where !lost.isEmpty:
            wide = .stands
            return []
        case .leaving, .stands: return []
        case .no, .asked: return lost
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// For which connections the agent holds which names. The rules themselves stand once for all of them.
///
/// A name whose bit is set for everyone says nothing new when it is posted again: its rule comes off the bus, and half
/// a million posts of it cost the agent nothing.
struct HoldTable {
    private struct Entry {
        var holders: [ManagedConnection] = []
        /// Whether the name's rule stands.
        var isHeard = false
    }

    private var names: [NotifyName: Entry] = [:]
    private var prefixes: [(prefix: String, holders: [ManagedConnection])] = []

    /// How many names and prefixes are held.
    var count: Int { names.count + prefixes.count }

    /// - Returns: what must be heard from now on, and was not.
    mutating func add(_ holder: ManagedConnection, _ wanted: Subjects) -> Subjects {
        var new = Subjects()
        for name in wanted.names {
            var entry = names.removeValue(forKey: name) ?? Entry()
            if !entry.isHeard { new.names.insert(name) }
            entry.isHeard = true
            entry.holders.append(holder)
            names[name] = entry
        }
        for prefix in wanted.prefixes {
            if let index = prefixes.firstIndex(where: { $0.prefix == prefix }) {
                prefixes[index].holders.append(holder)
            } else {
                new.prefixes.insert(prefix)
                prefixes.append((prefix, [holder]))
            }
        }
        return new
    }

    /// - Returns: what need not be heard any more.
    mutating func remove(_ holder: ManagedConnection, _ unwanted: Subjects) -> Subjects {
        var free = Subjects()
        for name in unwanted.names {
            guard var entry = names.removeValue(forKey: name) else { continue }
            entry.holders.removeAll { $0 === holder }
            if !entry.holders.isEmpty {
                names[name] = entry
            } else if entry.isHeard {
                free.names.insert(name)
            }
        }
        for prefix in unwanted.prefixes {
            guard let index = prefixes.firstIndex(where: { $0.prefix == prefix }) else { continue }
            prefixes[index].holders.removeAll { $0 === holder }
            if prefixes[index].holders.isEmpty {
                free.prefixes.insert(prefix)
                prefixes.remove(at: index)
            }
        }
        return free
    }

    /// Everyone a post of the name is kept for; one who stands under two prefixes comes twice.
    func forEachHolder(of name: NotifyName, _ body: (ManagedConnection) -> Void) {
        names[name]?.holders.forEach(body)
        for (prefix, holders) in prefixes where name.string.utf8.starts(with: prefix.utf8) { holders.forEach(body) }
    }

    /// Whether a name that was just posted need not be heard again until somebody's bit is cleared.
    ///
    /// If so, its rule is to be taken off the bus.
    mutating func quench(_ name: NotifyName) -> Bool {
        guard let entry = names[name], entry.isHeard,
            entry.holders.allSatisfy({ $0.transition.isCollecting && $0.pending.contains(name) })
        else { return false }
        names[name]?.isHeard = false
        return true
    }

    /// Begins to hear what is held and was not heard.
    ///
    /// - Returns: the names to be heard again.
    mutating func rouse(_ wanted: Set<NotifyName>) -> Set<NotifyName> {
        var roused: Set<NotifyName> = []
        for name in wanted where names[name]?.isHeard == false {
            names[name]?.isHeard = true
            roused.insert(name)
        }
        return roused
    }
}

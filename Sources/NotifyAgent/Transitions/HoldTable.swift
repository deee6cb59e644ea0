// SPDX-License-Identifier: Apache-2.0

import NotifyBus

/// For which connections the agent holds which names. The rules themselves stand once for all of them.
struct HoldTable {
    private var names: [NotifyName: [ManagedConnection]] = [:]
    private var prefixes: [(prefix: String, holders: [ManagedConnection])] = []

    /// How many names and prefixes are held.
    var count: Int { names.count + prefixes.count }

    /// - Returns: what nobody has held so far.
    mutating func add(_ holder: ManagedConnection, _ wanted: Subjects) -> Subjects {
        var new = Subjects()
        for name in wanted.names {
            if names[name] == nil { new.names.insert(name) }
            names[name, default: []].append(holder)
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

    /// - Returns: what nobody holds any more.
    mutating func remove(_ holder: ManagedConnection, _ unwanted: Subjects) -> Subjects {
        var free = Subjects()
        for name in unwanted.names {
            guard var holders = names.removeValue(forKey: name) else { continue }
            holders.removeAll { $0 === holder }
            if holders.isEmpty { free.names.insert(name) } else { names[name] = holders }
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
        names[name]?.forEach(body)
        for (prefix, holders) in prefixes where name.string.utf8.starts(with: prefix.utf8) { holders.forEach(body) }
    }
}

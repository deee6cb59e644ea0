// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// By how many entries each name and prefix is held: the connection hears it once for all of them.
struct HoldCount {
    private var names: [NotifyName: Int] = [:]
    private var prefixes: [NamePrefix: Int] = [:]

    /// - Returns: what nobody held before.
    mutating func add(_ subjects: Subjects) -> Subjects {
        var first = Subjects()
        for name in subjects.names {
            names[name, default: 0] += 1
            if names[name] == 1 { first.names.insert(name) }
        }
        for prefix in subjects.prefixes {
            prefixes[prefix, default: 0] += 1
            if prefixes[prefix] == 1 { first.prefixes.insert(prefix) }
        }
        return first
    }

    /// - Returns: what nobody holds any more.
    mutating func remove(_ subjects: Subjects) -> Subjects {
        var last = Subjects()
        for name in subjects.names {
            guard let count = names[name] else { continue }
            names[name] = count > 1 ? count - 1 : nil
            if count == 1 { last.names.insert(name) }
        }
        for prefix in subjects.prefixes {
            guard let count = prefixes[prefix] else { continue }
            prefixes[prefix] = count > 1 ? count - 1 : nil
            if count == 1 { last.prefixes.insert(prefix) }
        }
        return last
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// Which names somebody observes, in whatever state: what a source of events asks before it does any work for a name.
package struct WantedNames: Sendable {
    private var names: [NotifyName: Int] = [:]
    private var prefixes = PrefixIndex<Int>()

    /// Whether a connection observes the name by its name, and not by a prefix.
    package func containsExactly(_ name: NotifyName) -> Bool { names[name] != nil }

    /// Whether anybody would hear a post of the name.
    package func contains(_ name: NotifyName) -> Bool {
        if names[name] != nil { return true }
        var isWanted = false
        prefixes.forEachPrefix(of: name) { _, _ in isWanted = true }
        return isWanted
    }

    mutating func insert(_ subjects: Subjects) {
        for name in subjects.names { names[name, default: 0] += 1 }
        for prefix in subjects.prefixes { prefixes[prefix] = (prefixes[prefix] ?? 0) + 1 }
    }

    mutating func remove(_ subjects: Subjects) {
        for name in subjects.names {
            if let count = names[name] { names[name] = count > 1 ? count - 1 : nil }
        }
        for prefix in subjects.prefixes {
            if let count = prefixes[prefix] { prefixes[prefix] = count > 1 ? count - 1 : nil }
        }
        if names.isEmpty {
            names = [:]
        } else if names.capacity > 4 * names.count + 64 {
            names = names.filter { _ in true }
        }
    }
}

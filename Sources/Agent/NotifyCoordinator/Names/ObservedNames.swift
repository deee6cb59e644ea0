// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// Which names are observed, by connections in whatever state and by the agent itself, and by how many.
///
/// Some names are of interest: their provider starts with the first observer, and stops some time after the last. A
/// name is wanted by its name and by each of its prefixes.
package struct ObservedNames: Hashable, Sendable {
    private var counts = SubjectIndex<Int>()
    /// How many want each name of interest.
    private var interests: [NotifyName: Int] = [:]
    /// The names of interest in byte order, so that those with a common prefix are adjacent.
    private let ordered: [NotifyName]
    /// Those that may have become wanted or unwanted, and whether they were wanted before.
    private var touched: [NotifyName: Bool] = [:]

    package init(interests: Set<NotifyName> = []) {
        ordered = interests.sorted { ObservedNames.precedes($0.string, $1.string) }
        for name in ordered { self.interests[name] = 0 }
    }

    /// Whether the name is observed by its name, and not by a prefix.
    package func containsExactly(_ name: NotifyName) -> Bool { counts[name] != nil }

    /// Whether a post of the name would be heard.
    package func contains(_ name: NotifyName) -> Bool { count(of: name) > 0 }

    /// How many want a post of the name. An observer with two matching prefixes counts twice.
    package func count(of name: NotifyName) -> Int {
        if let count = interests[name] { return count }
        var count = counts[name] ?? 0
        counts.forEachPrefix(of: name) { _, subscribers in count += subscribers }
        return count
    }

    mutating func insert(_ subjects: Subjects) {
        counts.count(subjects)
        guard !ordered.isEmpty else { return }
        for name in interesting(in: subjects) { touch(name, by: 1) }
        for prefix in subjects.prefixes { touchAll(with: prefix.string, by: 1) }
    }

    /// - Parameter subjects: what was inserted, in whatever parts.
    mutating func remove(_ subjects: Subjects) {
        if !ordered.isEmpty {
            for name in interesting(in: subjects) where counts[name] != nil { touch(name, by: -1) }
            for prefix in subjects.prefixes where counts[prefix] != nil { touchAll(with: prefix.string, by: -1) }
        }
        counts.uncount(subjects)
    }

    /// The names of interest among many, or those of which most are none.
    private func interesting(in subjects: Subjects) -> [NotifyName] {
        subjects.names.count > ordered.count
            ? ordered.filter(subjects.names.contains) : subjects.names.filter { interests[$0] != nil }
    }

    /// The names of interest that have become wanted or unwanted since the last time.
    mutating func takeChanges() -> [(name: NotifyName, isWanted: Bool)] {
        guard !touched.isEmpty else { return [] }
        defer { touched = [:] }
        let changes = touched.compactMap { name, wasWanted in
            let isWanted = (interests[name] ?? 0) > 0
            return isWanted == wasWanted ? nil : (name: name, isWanted: isWanted)
        }
        return changes.sorted { ObservedNames.precedes($0.name.string, $1.name.string) }
    }

    private mutating func touch(_ name: NotifyName, by change: Int) {
        guard let count = interests[name] else { return }
        if touched[name] == nil { touched[name] = count > 0 }
        interests[name] = count + change
    }

    private mutating func touchAll(with prefix: String, by change: Int) {
        var (low, high) = (0, ordered.count)
        while low < high {
            let middle = (low + high) / 2
            if ObservedNames.precedes(ordered[middle].string, prefix) { low = middle + 1 } else { high = middle }
        }
        while low < ordered.count, ordered[low].string.utf8.starts(with: prefix.utf8) {
            touch(ordered[low], by: change)
            low += 1
        }
    }

    private static func precedes(_ left: String, _ right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }
}

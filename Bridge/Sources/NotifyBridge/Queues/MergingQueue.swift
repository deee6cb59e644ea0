// SPDX-License-Identifier: Apache-2.0

package import NotifyBus

/// Queued names, in order: 4,096 individually, then one of each, 65,536 in all.
package struct MergingQueue: Sendable {
    /// What became of a name that was added.
    package enum Outcome: Sendable {
        case queued
        /// An equal name is already queued.
        case merged
        /// The queue is full of other names, so it is lost.
        case lost
    }

    package static let individually = 4_096
    package static let capacity = 65_536

    /// The queued names begin at `first`.
    private var names: [NotifyName] = []
    private var first = 0
    private var counts: [NotifyName: Int] = [:]
    /// Whether all equal names are coalesced, from the first on.
    private var mergesAll: Bool

    package init(mergesAll: Bool = false) {
        self.mergesAll = mergesAll
    }

    package var count: Int { names.count - first }
    package var isEmpty: Bool { count == 0 }

    package func contains(_ name: NotifyName) -> Bool { counts[name] != nil }

    package mutating func append(_ name: NotifyName) -> Outcome {
        if mergesAll || count >= MergingQueue.individually {
            if counts[name] != nil { return .merged }
            if count >= MergingQueue.capacity { return .lost }
        }
        names.append(name)
        counts[name, default: 0] += 1
        return .queued
    }

    package mutating func takeFirst() -> NotifyName? {
        guard first < names.count else { return nil }
        let name = names[first]
        first += 1
        if let count = counts[name], count > 1 { counts[name] = count - 1 } else { counts[name] = nil }
        if first == names.count {
            names.removeAll(keepingCapacity: first <= MergingQueue.individually)
            first = 0
        } else if first >= MergingQueue.individually {
            names.removeFirst(first)
            first = 0
        }
        return name
    }

    /// Keeps only the first of each name, until ``takeIndividually()`` is called.
    ///
    /// - Returns: how many were coalesced.
    package mutating func mergeAll() -> Int {
        let before = count
        var seen: Set<NotifyName> = []
        names = names[first...].filter { seen.insert($0).inserted }
        first = 0
        counts = Dictionary(uniqueKeysWithValues: names.map { ($0, 1) })
        mergesAll = true
        return before - count
    }

    package mutating func takeIndividually() {
        mergesAll = false
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// The last 1,024 stamps of each of the last 4,096 origins, with the names that they stood for, to recognize what has
/// already arrived by another path.
///
/// Anybody who may publish to a topic can write any stamp there. So a stamp counts only for the name that it came with:
/// a forged one silences no other name.
package struct StampWindow: Sendable {
    package static let depth = 1_024
    package static let origins = 4_096

    private struct Entry {
        /// Hashes of number and name, with a secret that is new in each process.
        var marks: [Int] = []
        var next = 0
        var highest: UInt64 = 0
        var lastUse: UInt64 = 0
    }

    private var entries: [Origin: Entry] = [:]
    private var uses: UInt64 = 0

    package init() {}

    /// Records a stamp.
    ///
    /// - Returns: whether it is new.
    package mutating func insert(_ stamp: Stamp, of name: NotifyName) -> Bool {
        uses += 1
        if entries[stamp.origin] == nil, entries.count >= StampWindow.origins,
            let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            entries[oldest.key] = nil
        }
        let now = uses
        var hasher = Hasher()
        hasher.combine(stamp.sequence)
        hasher.combine(name)
        let mark = hasher.finalize()
        return StampWindow.insert(mark, stamp.sequence, into: &entries[stamp.origin, default: Entry()], now)
    }

    private static func insert(_ mark: Int, _ sequence: UInt64, into entry: inout Entry, _ now: UInt64) -> Bool {
        entry.lastUse = now
        // Numbers increase, so there is nearly always nothing to search.
        if sequence <= entry.highest, entry.marks.contains(mark) { return false }
        entry.highest = max(entry.highest, sequence)
        if entry.marks.count < depth {
            entry.marks.append(mark)
        } else {
            entry.marks[entry.next] = mark
            entry.next = (entry.next + 1) % depth
        }
        return true
    }
}

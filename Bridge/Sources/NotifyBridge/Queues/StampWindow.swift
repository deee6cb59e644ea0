// SPDX-License-Identifier: Apache-2.0

/// The last 1,024 stamps of each of the last 4,096 origins, to recognize what has already arrived by another path.
package struct StampWindow: Sendable {
    package static let depth = 1_024
    package static let origins = 4_096

    private struct Entry {
        var sequences: [UInt64] = []
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
    package mutating func insert(_ stamp: Stamp) -> Bool {
        uses += 1
        if entries[stamp.origin] == nil, entries.count >= StampWindow.origins,
            let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            entries[oldest.key] = nil
        }
        let now = uses
        return StampWindow.insert(stamp.sequence, into: &entries[stamp.origin, default: Entry()], now)
    }

    private static func insert(_ sequence: UInt64, into entry: inout Entry, _ now: UInt64) -> Bool {
        entry.lastUse = now
        // Numbers increase, so this is nearly always the case.
        if sequence <= entry.highest, entry.sequences.contains(sequence) { return false }
        entry.highest = max(entry.highest, sequence)
        if entry.sequences.count < depth {
            entry.sequences.append(sequence)
        } else {
            entry.sequences[entry.next] = sequence
            entry.next = (entry.next + 1) % depth
        }
        return true
    }
}

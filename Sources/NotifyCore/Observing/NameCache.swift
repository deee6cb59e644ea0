// SPDX-License-Identifier: Apache-2.0

/// Names that came in lately for the observers of prefixes, so that a name is not made anew for each post.
struct NameCache {
    private static let limit = 1_024

    /// By a hash that nobody outside can foresee: posters choose the names.
    private var known: [Int: (name: NotifyName, shape: SignalShape)] = [:]

    /// - Returns: nil if the bytes are not a name.
    mutating func find(_ bytes: UnsafeRawBufferPointer) -> (name: NotifyName, shape: SignalShape)? {
        let hash = TopicTable.seededHash(of: bytes)
        if let entry = known[hash], entry.name.hasBytes(bytes) { return entry }
        guard let name = try? NotifyName(utf8: bytes) else { return nil }
        if known.count >= NameCache.limit { known.removeAll() }
        let entry = (name, SignalShape(of: name))
        known[hash] = entry
        return entry
    }
}

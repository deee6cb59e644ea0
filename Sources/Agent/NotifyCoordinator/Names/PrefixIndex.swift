// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// Values by prefix, found for a name without comparing each prefix.
///
/// A name's bytes are traversed once. At each length that some prefix has, one table lookup determines whether the
/// bytes up to there are a prefix. So a name of 40 bytes takes at most 41 lookups, however many prefixes there are.
package struct PrefixIndex<Value> {
    fileprivate struct Entry {
        let prefix: NamePrefix
        var value: Value
    }

    /// By the hash of the prefix; two prefixes may share one.
    private var entries: [UInt64: [Entry]] = [:]
    /// How many prefixes have each length.
    private var lengths: [Int] = []
    package private(set) var count = 0
    /// Strangers choose prefixes, and must not be able to predict collisions.
    private let seed = UInt64.random(in: .min ... .max)
    private let factor = UInt64.random(in: .min ... .max) | 1

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// The value of a prefix; nil removes it.
    package subscript(prefix: NamePrefix) -> Value? {
        get { entries[hash(of: prefix)]?.first { $0.prefix == prefix }?.value }
        set { change(prefix) { $0 = newValue } }
    }

    /// Changes the value of a prefix in its place; nil removes it.
    package mutating func change<Result>(_ prefix: NamePrefix, _ change: (inout Value?) -> Result) -> Result {
        let hash = hash(of: prefix)
        var bucket = entries.removeValue(forKey: hash) ?? []
        // Taken out, so that the value has one owner and is not copied.
        let index = bucket.firstIndex { $0.prefix == prefix }
        var value = index.map { bucket.remove(at: $0).value }
        let result = change(&value)
        if (value != nil) != (index != nil) { note(prefix.string.utf8.count, value != nil ? 1 : -1) }
        if let value { bucket.append(Entry(prefix: prefix, value: value)) }
        if !bucket.isEmpty { entries[hash] = bucket }
        if isEmpty { (entries, lengths) = ([:], []) }
        return result
    }

    /// All prefixes of a name, the shortest first.
    package func forEachPrefix(of name: NotifyName, _ body: (NamePrefix, Value) -> Void) {
        guard !isEmpty else { return }
        var hash = seed
        var length = 0
        look(at: hash, length, name, body)
        for byte in name.string.utf8 {
            length += 1
            guard length < lengths.count else { return }
            hash = step(hash, byte)
            look(at: hash, length, name, body)
        }
    }

    package var prefixes: [NamePrefix] { entries.values.flatMap { $0.map(\.prefix) } }

    private func look(at hash: UInt64, _ length: Int, _ name: NotifyName, _ body: (NamePrefix, Value) -> Void) {
        guard lengths[length] > 0, let bucket = entries[hash] else { return }
        for entry in bucket where entry.prefix.string.utf8.count == length && entry.prefix.begins(name) {
            body(entry.prefix, entry.value)
        }
    }

    private mutating func note(_ length: Int, _ change: Int) {
        if lengths.count <= length { lengths += Array(repeating: 0, count: length + 1 - lengths.count) }
        lengths[length] += change
        count += change
    }

    private func hash(of prefix: NamePrefix) -> UInt64 { prefix.string.utf8.reduce(seed, step) }

    private func step(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
        let mixed = (hash ^ UInt64(byte)) &* factor
        return mixed ^ mixed >> 29
    }
}

// By content: each table has hashes of its own.
extension PrefixIndex: Equatable where Value: Equatable {
    package static func == (left: PrefixIndex, right: PrefixIndex) -> Bool { left.content == right.content }
}

extension PrefixIndex: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) { hasher.combine(content) }
}

extension PrefixIndex {
    private var content: [NamePrefix: Value] {
        if isEmpty { return [:] }
        return Dictionary(uniqueKeysWithValues: entries.values.joined().map { ($0.prefix, $0.value) })
    }
}

extension PrefixIndex: Sendable where Value: Sendable {}
extension PrefixIndex.Entry: Sendable where Value: Sendable {}

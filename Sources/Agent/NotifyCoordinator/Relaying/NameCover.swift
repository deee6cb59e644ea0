// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The names by which a client of the relay is heard for: each name while they are few, and common prefixes of them when they
/// are many. So a client costs the bus a few rules, however many names it observes. The relay hears in vain any other
/// names that the prefixes match.
struct NameCover: Hashable, Sendable {
    /// Up to this many names have a rule each.
    static let limit = 64
    /// How many prefixes stand for more.
    static let prefixCount = 16

    /// What is to be heard, besides the prefixes that the client observes.
    private(set) var rules = Subjects()

    /// The client observes these as well.
    ///
    /// - Returns: what is to be heard now, and what no longer once that is.
    mutating func add(_ names: Set<NotifyName>) -> (asked: Subjects, given: Subjects) {
        let before = rules.prefixes
        var added = names
        if !before.isEmpty { added = names.filter { name in !before.contains { $0.begins(name) } } }
        guard rules.names.count + added.count > NameCover.limit else {
            rules.names.formUnion(added)
            return (Subjects(names: added), Subjects())
        }
        let texts = added.map(\.string) + rules.names.map(\.string) + before.map(\.string)
        let old = rules
        rules = Subjects(prefixes: NameCover.commonPrefixes(of: texts))
        return (rules.subtracting(old), old.subtracting(rules))
    }

    /// The client no longer observes these names, and still observes the others.
    ///
    /// - Returns: as for `add`.
    mutating func remove(
        _ names: Set<NotifyName>,
        leaving others: Set<NotifyName>
    ) -> (asked: Subjects, given: Subjects) {
        let old = rules
        if !rules.prefixes.isEmpty, others.count <= NameCover.limit / 2 {
            rules = Subjects(names: others)
            return (rules.subtracting(old), old.subtracting(rules))
        }
        let few = rules.names.count < names.count
        let gone = few ? rules.names.filter(names.contains) : names.filter(rules.names.contains)
        rules.names.subtract(gone)
        return (Subjects(), Subjects(names: gone))
    }

    /// The bus does not let the relay hear this.
    mutating func drop(_ refused: Subjects) { rules.subtract(refused) }

    /// A few prefixes, of which each text begins with one: as long as possible.
    static func commonPrefixes(of texts: [String]) -> Set<NamePrefix> {
        let sorted = texts.sorted()
        guard !sorted.isEmpty else { return [] }
        // Neighbors that have the least in common are separated.
        var common: [Int] = []
        common.reserveCapacity(sorted.count)
        for (text, next) in zip(sorted, sorted.dropFirst()) {
            common.append(commonLength(text, next))
        }
        let cuts = common.indices.sorted { (common[$0], $0) < (common[$1], $1) }.prefix(prefixCount - 1).sorted()
        var prefixes: Set<NamePrefix> = []
        var first = 0
        for last in cuts + [sorted.count - 1] {
            let whole = Array(sorted[first].utf8)
            prefixes.insert(NamePrefix(text(whole.prefix(common[first..<last].min() ?? whole.count))))
            first = last + 1
        }
        return prefixes
    }

    /// How many bytes two texts have in common at their beginning.
    private static func commonLength(_ text: String, _ other: String) -> Int {
        var count = 0
        for (byte, otherByte) in zip(text.utf8, other.utf8) {
            if byte != otherByte { break }
            count += 1
        }
        return count
    }

    /// Without the bytes of a character that was cut off.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        for count in 0..<4 {
            if let text = String(validating: bytes.dropLast(count), as: UTF8.self) { return text }
        }
        return ""
    }
}

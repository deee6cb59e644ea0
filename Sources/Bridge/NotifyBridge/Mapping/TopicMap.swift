// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// An MQTT topic, or a filter of topics. Compared byte by byte, as brokers do; a `String` compares canonical forms.
package struct MQTTTopic: Hashable, Sendable, CustomStringConvertible {
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    package init(_ text: String) {
        bytes = Array(text.utf8)
    }

    package var description: String { String(decoding: bytes, as: UTF8.self) }

    /// It contains no NUL, because no name does.
    package func withCString<Result>(_ body: (UnsafePointer<CChar>) throws -> Result) rethrows -> Result {
        try description.withCString(body)
    }
}

/// How names map to topics: `nb1/REALM/` and the name, split into levels at its first 15 dots. See notify-bridge(8).
package struct TopicMap: Sendable {
    /// At how many dots a name is split. Mosquitto disconnects a client that publishes to a topic of more than 200
    /// levels, EMQX allows 128, and a name may have 255 dots.
    package static let cuts = 15

    /// `nb1/REALM/`.
    private let root: [UInt8]

    package init(realm: String) {
        root = Array("nb1/\(realm)/".utf8)
    }

    /// The topic of a name. Each name has one.
    package func topic(of name: NotifyName) -> MQTTTopic {
        MQTTTopic(bytes: root + TopicMap.levels(of: name.string))
    }

    /// The name of a topic; nil if it belongs to no name.
    package func name(of topic: UnsafeRawBufferPointer) -> NotifyName? {
        guard topic.starts(with: root) else { return nil }
        let levels = UnsafeRawBufferPointer(rebasing: topic.dropFirst(root.count))
        var bytes: [UInt8] = []
        var rest = levels[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "/"): bytes.append(UInt8(ascii: "."))
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(\.hexadecimalValue),
                    let low = rest.popFirst().flatMap(\.hexadecimalValue)
                else { return nil }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        // A split or an escape in the wrong place: only the canonical spelling is valid.
        guard let name = bytes.withUnsafeBytes({ try? NotifyName(utf8: $0) }),
            TopicMap.levels(of: name.string).elementsEqual(levels)
        else { return nil }
        return name
    }

    /// The fewest filters that match every allowed name. They don't overlap, because a broker may deliver twice what
    /// two filters match.
    package func filters(for rules: NameRules) -> [MQTTTopic] {
        // A tree's filter, `a/b/#`, also matches `a/b` itself.
        var trees: [[UInt8]] = []
        for tree in Set(rules.prefixes.map(tree)).sorted(by: { $0.count < $1.count })
        where !TopicMap.covers(trees, tree) {
            trees.append(tree)
        }
        let topics = rules.names.map { topic(of: $0).bytes }.filter { !TopicMap.covers(trees, $0) }
        return (trees.map { $0 + Array("/#".utf8) } + topics).map { MQTTTopic(bytes: $0) }
            .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    /// The levels above all topics of names that begin with a prefix.
    private func tree(of prefix: String) -> [UInt8] {
        var levels: [UInt8] = []
        var cuts = 0
        for byte in TopicMap.levels(of: prefix) {
            if byte == UInt8(ascii: "/") {
                cuts += 1
                // The last level contains the rest of a name, which filters can't match in part.
                if cuts == TopicMap.cuts { return root + levels }
            }
            levels.append(byte)
        }
        // It ends with a dot.
        return root + levels.dropLast()
    }

    private static func covers(_ trees: [[UInt8]], _ topic: [UInt8]) -> Bool {
        trees.contains { topic.starts(with: $0) && (topic.count == $0.count || topic[$0.count] == UInt8(ascii: "/")) }
    }

    private static func levels(of name: String) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(name.utf8.count)
        var cuts = 0
        for scalar in name.unicodeScalars {
            if scalar == ".", cuts < TopicMap.cuts {
                cuts += 1
                bytes.append(UInt8(ascii: "/"))
            } else if isEscaped(scalar) {
                for byte in String(scalar).utf8 {
                    bytes += [UInt8(ascii: "%"), hexadecimal[Int(byte >> 4)], hexadecimal[Int(byte & 15)]]
                }
            } else {
                bytes += String(scalar).utf8
            }
        }
        return bytes
    }

    /// Characters with a meaning in topics, here or in MQTT, and those that brokers may refuse: control characters and
    /// noncharacters. See section 1.5.4 of MQTT 5.
    private static func isEscaped(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x25, 0x2F, 0x2B, 0x23, 0x01...0x1F, 0x7F...0x9F, 0xFDD0...0xFDEF: true
        case let value: value & 0xFFFE == 0xFFFE
        }
    }

    private static let hexadecimal = Array("0123456789ABCDEF".utf8)
}

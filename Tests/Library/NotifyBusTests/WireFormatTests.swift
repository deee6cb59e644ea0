// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import NotifyCore

@Suite struct WireFormatTests {
    @Test func `the interface of known names`() throws {
        let known = [
            ("com.example.backup-done", "org.notifybus.n.com.example.backup_2ddone"),
            ("a", "org.notifybus.n.a"),
            ("1st.2nd", "org.notifybus.n._31st._32nd"),
            ("under_score", "org.notifybus.n.under_5fscore"),
            (".", "org.notifybus.n._._"),
            ("a..b.", "org.notifybus.n.a._.b._"),
            ("é", "org.notifybus.n._c3_a9"),
            (String(repeating: "a", count: 239), "org.notifybus.n." + String(repeating: "a", count: 239)),
            (String(repeating: "a", count: 240), "org.notifybus.h.x8ebc3ca2aa94ae15"),
        ]
        for (name, interface) in known {
            #expect(WireFormat.interface(for: try NotifyName(name)) == interface)
        }
    }

    @Test func `escaping is injective and reversible over random names`() throws {
        var generator = SeededGenerator(seed: 20_261_121)
        var seen: [String: String] = [:]
        for _ in 0..<(isLongRun ? 200_000 : 20_000) {
            let name = randomName(using: &generator)
            let escaped = WireFormat.escape(name)
            #expect(WireFormat.unescape(escaped).map { Array($0.utf8) } == Array(name.utf8))
            if let other = seen.updateValue(name, forKey: escaped) {
                #expect(Array(other.utf8) == Array(name.utf8), "two names travel as \(escaped)")
            }
        }
    }

    @Test func `an escaped name is a valid interface name`() throws {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<(isLongRun ? 50_000 : 10_000) {
            let interface = WireFormat.interface(for: try NotifyName(randomName(using: &generator)))
            #expect(interface.utf8.count <= 255)
            for part in interface.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
                let first = try #require(part.first)
                #expect(!(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first))
                #expect(part.allSatisfy(isInterfaceByte))
            }
        }
    }

    @Test func `an interface is that of a name only if it is spelled like it, to the last byte`() throws {
        var generator = SeededGenerator(seed: 11)
        let long = String(repeating: "-", count: 300)
        for index in 0..<2_000 {
            let name = try NotifyName(randomName(using: &generator) + (index % 50 == 0 ? long : ""))
            let interface = WireFormat.interface(for: name)
            #expect(WireFormat.isInterface(interface, of: name))
            var other = Array(interface.utf8)
            switch generator.next() % 3 {
            case 0: other.removeLast()
            case 1: other.append(UInt8(ascii: "a"))
            default: other[Int(generator.next() % UInt64(other.count))] ^= 1
            }
            #expect(!WireFormat.isInterface(String(decoding: other, as: UTF8.self), of: name))
        }
        // Escaped, this name would be too long.
        #expect(!WireFormat.isInterface("org.notifybus.n." + WireFormat.escape(long), of: try NotifyName(long)))
    }

    @Test func `a spelling that escaping does not produce is rejected`() {
        for text in ["", "a_", "a_2", "a_2G", "a_2D", "_61", "1a", "a-b", "a._.", "a_5f_5", "_5F", "é"] {
            #expect(WireFormat.unescape(text) == nil, "\(text)")
        }
    }

    @Test func `two names that share a hash share an interface`() throws {
        let tail = String(repeating: "-", count: 300)
        let left = try NotifyName("8yn0iYCKYHlIj4-BwPqk" + tail)
        let right = try NotifyName("GReLUrM4wMqfg9yzV3KQ" + tail)
        #expect(left != right)
        #expect(WireFormat.interface(for: left) == WireFormat.interface(for: right))
    }

    @Test func `a prefix becomes the narrowest rule that covers it`() {
        let namespaces: [(String, String?)] = [
            ("com.example.", "com.example"), ("com.exa", "com"), ("com", nil), ("", nil), ("a b.c", nil),
            ("com.ex ample.x", "com"), ("com.1st.x", "com"), ("my-app.", "my-app"),
        ]
        for (prefix, namespace) in namespaces {
            let rule = "type='signal',path='/org/notifybus',member='Posted'"
            let expected = namespace.map { "\(rule),arg0namespace='\($0)'" } ?? rule
            #expect(MatchRule.prefix(prefix).first == expected)
        }
        #expect(MatchRule.prefix("com.apple.system.net").count == 1)
        #expect(MatchRule.prefix("com.apple.").count == 2)
        #expect(MatchRule.prefix("org.notifybus.system.w") == MatchRule.prefix("org.notifybus.system.x"))
        #expect(MatchRule.prefix("org.notifybus.system.").count == 1)
        #expect(MatchRule.prefix("org.").count == 2)
        #expect(MatchRule.prefix("org.notifybus.session.").count == 1)
        #expect(MatchRule.prefix("com.example.").count == 1)
    }

    /// Random valid UTF-8, in which characters that escaping treats specially are more frequent.
    private func randomName(using generator: inout SeededGenerator) -> String {
        let special: [UInt8] = Array("._-019azAZ ".utf8)
        let count = Int.random(in: 1...40, using: &generator)
        let bytes = (0..<count).map { _ in
            Bool.random(using: &generator)
                ? special.randomElement(using: &generator) ?? 0x2e : UInt8.random(in: 1...255, using: &generator)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func isInterfaceByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

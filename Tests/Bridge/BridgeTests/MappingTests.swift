// SPDX-License-Identifier: Apache-2.0

import NotifyBridge
import NotifyCore
import TestSupport
import Testing

@Suite struct MappingTests {
    private let map = TopicMap(realm: "home")

    private func name(of topic: String) -> NotifyName? {
        Array(topic.utf8).withUnsafeBytes { map.name(of: $0) }
    }

    @Test(
        "A name's dots become levels, and characters with a meaning in topics are escaped",
        arguments: [
            ("com.example.backup.done", "nb1/home/com/example/backup/done"),
            ("com..x", "nb1/home/com//x"),
            (".", "nb1/home//"),
            ("a%b/c+d#e", "nb1/home/a%25b%2Fc%2Bd%23e"),
            ("a\u{1}\u{1F}\u{7F}\u{9F}", "nb1/home/a%01%1F%7F%C2%9F"),
            ("grün.日本", "nb1/home/grün/日本"),
            ("1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.", "nb1/home/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16.17."),
        ]
    )
    func topics(name: String, topic: String) throws {
        let name = try NotifyName(name)
        #expect(map.topic(of: name) == MQTTTopic(topic))
        #expect(self.name(of: topic) == name)
    }

    @Test("Noncharacters are escaped")
    func noncharacters() throws {
        let name = try NotifyName(
            String(String.UnicodeScalarView([0xFDD0, 0xFFFE, 0x10FFFF].map { Unicode.Scalar(UInt32($0))! }))
        )
        #expect(map.topic(of: name) == MQTTTopic("nb1/home/%EF%B7%90%EF%BF%BE%F4%8F%BF%BF"))
    }

    @Test("Every legal character comes back unchanged")
    func characters() throws {
        // All those near the escaped ones, and some of the others.
        let values =
            Array(1...0x2FF) + Array(0xFD00...0x10010) + Array(stride(from: 0x300, through: 0x10FFFF, by: 97))
            + (1...16).flatMap { [$0 << 16 | 0xFFFE, $0 << 16 | 0xFFFF] }
        for value in values {
            guard let scalar = Unicode.Scalar(UInt32(value)) else { continue }
            let name = try NotifyName("a.\(scalar).b")
            let topic = map.topic(of: name)
            #expect(topic.bytes.withUnsafeBytes { map.name(of: $0) } == name)
        }
    }

    @Test("A topic has at most 200 levels, whatever the name")
    func levels() throws {
        let name = try NotifyName(String(repeating: "a.", count: 255) + "a")
        let topic = map.topic(of: name)
        #expect(topic.bytes.filter { $0 == UInt8(ascii: "/") }.count == 17)
        #expect(topic.bytes.withUnsafeBytes { map.name(of: $0) } == name)
    }

    @Test(
        "A topic that is no name's is refused",
        arguments: [
            "nb1/home/com.example", "nb1/home/a%2Eb", "nb1/home/a%2fb", "nb1/home/%41", "nb1/home/%4", "nb1/home/%",
            "nb1/home/", "nb1/home", "nb1/other/a", "nb2/home/a", "a/b", "nb1/home/a%00", "nb1/home/%FF",
            "nb1/home/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
        ]
    )
    func strangeTopics(topic: String) {
        #expect(name(of: topic) == nil)
    }

    private func rules(_ lines: [String]) throws -> NameRules {
        NameRules(try lines.map { try NameRule($0) })
    }

    @Test(
        "The filters cover each name once",
        arguments: [
            (["com.example.a", "com.example.b"], ["nb1/home/com/example/a", "nb1/home/com/example/b"]),
            (["com.example.*"], ["nb1/home/com/example/#"]),
            (["com.example.*", "com.*", "com.example.a", "com.b.c.*"], ["nb1/home/com/#"]),
            // The filter for the subtree also matches com.example itself.
            (["com.example.*", "com.example"], ["nb1/home/com/example/#"]),
            (["com.example.*", "com.examples.*"], ["nb1/home/com/example/#", "nb1/home/com/examples/#"]),
            (["a+b.*", "c#"], ["nb1/home/a%2Bb/#", "nb1/home/c%23"]),
            (
                ["1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.*", "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.18.*"],
                ["nb1/home/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/#"]
            ),
        ]
    )
    func filters(lines: [String], filters: [String]) throws {
        #expect(map.filters(for: try rules(lines)) == filters.map { MQTTTopic($0) })
    }

    @Test(
        "A line for names that never cross is refused",
        arguments: [
            "self.x", "self.*", "user.uid.0", "user.uid.1000.x.*", "com.apple.system.timezone", "com.apple.system.*",
            "org.notifybus.system.sleep", "org.notifybus.session.*", "*", ".*", "",
        ]
    )
    func refusedLines(line: String) {
        #expect(throws: NameRule.Fault.self) { try NameRule(line) }
    }

    @Test(
        "A name that would break a line or move a cursor crosses no border, whatever the configuration says",
        arguments: [
            "a\nb", "a\tb", "a\rb", "a\u{1B}[2J", "a\u{7F}", "a\u{9B}1m", "a\u{2028}b", "a\u{202E}b", "a\u{2066}b",
        ]
    )
    func controlCharacters(text: String) throws {
        let name = try NotifyName(text)
        #expect(!(try rules(["a.*"])).allow(try NotifyName("a.\(text)")))
        #expect(throws: NameRule.Fault.self) { try NameRule(text) }
        #expect(throws: NameRule.Fault.self) { try NameRule(text + ".*") }
        #expect(!NameRules([.name(name)]).allow(name))
    }

    @Test("A broad line doesn't let through names that never cross")
    func border() throws {
        let rules = try rules(["com.*", "user.*", "org.*"])
        #expect(rules.allow("com.example.a"))
        #expect(rules.allow("org.notifybus.example"))
        for name in [
            "self.x", "user.uid.0", "user.uid.0.x", "com.apple.system.timezone", "org.notifybus.system.sleep",
            "org.notifybus.session.locked",
        ] {
            #expect(!rules.allow(try NotifyName(name)), "\(name)")
        }
        #expect(!rules.allow("com"))
        #expect(!rules.allow("net.example"))
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import NotifyBus
import Testing

@testable import NotifyCore

private typealias NotifyName = NotifyBus.NotifyName
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// Names as programs write them.
extension NotifyBus.NotifyName {
    fileprivate static let backupDone: Self = "com.example.backup.done"
    fileprivate static let nameless: Self = ""
}

@Suite struct NameTests {
    @Test func `an illegal name is an error with a sentence`() throws {
        let illegal: [(String, String)] = [
            ("", "The name is empty; it must have 1 to 511 bytes."),
            ("a\0b", "The name contains a NUL byte, which is not allowed."),
            (String(repeating: "x", count: 512), "The name has 512 bytes; at most 511 are allowed."),
            (String(repeating: "é", count: 256), "The name has 512 bytes; at most 511 are allowed."),
        ]
        for (name, sentence) in illegal {
            let error = try #require(throws: NotifyBusError.self) { try NotifyName(name) }
            #expect(error.code == .invalidName)
            #expect(error.description == sentence)
        }
        for bytes: [UInt8] in [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x61, 0xe2, 0x82], []] {
            let error = try #require(throws: NotifyBusError.self) {
                try bytes.withUnsafeBytes { try NotifyName(utf8: $0) }
            }
            #expect(error.code == .invalidName)
        }
    }

    @Test func `a name of 511 bytes, a dot, a space and a line feed are legal`() throws {
        for name in [String(repeating: "x", count: 511), ".", " ", "\n", "..", "a..b", "Ünïcödé 🔔"] {
            #expect(try NotifyName(name).string == name)
        }
    }

    @Test func `names are compared byte by byte`() throws {
        let composed: NotifyName = "caf\u{e9}"
        let decomposed: NotifyName = "cafe\u{301}"
        #expect(composed != decomposed)
        #expect(NotifyName("a") != NotifyName("A"))
        #expect(NotifyName("a.b") == NotifyName("a.b"))
    }

    @Test func `constants can be literals, and are names like any other`() throws {
        #expect(NotifyName.backupDone.string == "com.example.backup.done")
        #expect(try NotifyName.backupDone == NotifyName(["com", "example", "backup", "done"].joined(separator: ".")))
        #expect(NotifyName(rawValue: "com.example.backup.done") == .backupDone)
        #expect(NotifyName(rawValue: "") == nil)
    }

    @Test func `an invalid literal terminates the program at its first use, with the reason`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            print(NotifyName.nameless.string)
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("“” is not a valid name. The name is empty;"), "\(text)")
    }

    @Test func `names are encoded as strings, and decoded only from strings`() throws {
        let data = try JSONEncoder().encode([NotifyName.backupDone])
        #expect(String(decoding: data, as: UTF8.self) == #"["com.example.backup.done"]"#)
        #expect(try JSONDecoder().decode([NotifyName].self, from: data) == [.backupDone])
        #expect(throws: DecodingError.self) { try JSONDecoder().decode([NotifyName].self, from: Data(#"[""]"#.utf8)) }
    }

    @Test func `scopes follow notify(3)`() throws {
        let scopes: [(String, CoreName.Scope)] = [
            ("self.x", .process), ("self.", .process), ("self", .ordinary), ("Self.x", .ordinary),
            ("com.apple.system.timezone", .reserved), ("com.apple.system.", .reserved),
            ("com.apple.system", .ordinary), ("com.apple.systems.x", .ordinary),
            ("org.notifybus.system.willsleep", .reserved), ("org.notifybus.system.", .reserved),
            ("org.notifybus.system", .ordinary), ("org.notifybus.session.lock", .ordinary),
            ("user.uid.501", .owned(by: 501)), ("user.uid.501.x", .owned(by: 501)), ("user.uid.0", .owned(by: 0)),
            ("user.uid.5x", .owned(by: nil)), ("user.uid.007", .owned(by: nil)), ("user.uid.+7", .owned(by: nil)),
            ("user.uid.", .owned(by: nil)), ("user.uid.4294967296", .owned(by: nil)), ("user.uid", .ordinary),
        ]
        for (name, scope) in scopes {
            #expect(try CoreName(name).storage.scope == scope, "\(name)")
        }
        #expect(CoreName.Scope.owned(by: 501).isOpen(to: 501))
        #expect(CoreName.Scope.owned(by: 501).isOpen(to: 0))
        #expect(!CoreName.Scope.owned(by: 501).isOpen(to: 50))
        #expect(!CoreName.Scope.owned(by: nil).isOpen(to: 501))
    }
}

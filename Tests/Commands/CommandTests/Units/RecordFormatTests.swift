// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore
import TestSupport
import Testing

@testable import notify_wait

@Suite struct RecordFormatTests {
    private func record(_ format: RecordFormat, name: String, count: Int = 1) throws -> String {
        let arrival = Notification(name: try NotifyName(name), time: Clock.wall, moment: 0)
        var record: [UInt8] = []
        format.write(arrival, count: count, to: &record)
        return String(decoding: record, as: UTF8.self)
    }

    private func format(_ text: String) throws -> RecordFormat {
        try RecordFormat(parsing: try #require(Argument(copying: text)))
    }

    @Test(arguments: [
        ("", ""), ("%n", "N"), ("%n%n", "NN"), ("%%n", "%n"), ("%%%n", "%N"), (#"\\n"#, #"\n"#),
        (#"\n\t\0\\"#, "\n\t\0\\"),
        ("%c-%n", "42-N"), ("é%n\u{1f514}", "éN\u{1f514}"), ("%c%c", "4242"),
    ])
    func `a format is written as it says`(text: String, expected: String) throws {
        #expect(try record(format(text), name: "N", count: 42) == expected)
    }

    @Test func `a name is never taken for a part of the format`() throws {
        #expect(try record(format("%n|%n"), name: #"%c\n%"#) == #"%c\n%|%c\n%"#)
    }

    @Test(arguments: ["%", "%%%", "%x", "%N", "% n", #"\"#, #"\x"#, #"\\\"#, "%\u{e9}"])
    func `a sequence that means nothing is an error that names those that do`(text: String) throws {
        let error = try #require(throws: UsageError.self) { try format(text) }
        #expect(error.message.contains("the known ones are "))
    }

    @Test func `milliseconds are cut, never rounded up into the next second`() throws {
        let time = makeTime(seconds: 1_000_000_000, nanoseconds: 999_999_999)
        var bytes: [UInt8] = []
        LocalTime.append(time, to: &bytes)
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.utf8.count == 29 && text.contains(".999"))
    }

    @Test func `JSON text is escaped where RFC 8259 demands it, and nowhere else`() throws {
        for value in 1...0x2fff as ClosedRange<UInt32> {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let name = "a\(scalar)b"
            let line = try record(.json, name: name, count: Int(value))
            let object = try JSONReader.object(line)
            guard case .string(let read) = object["name"] else { throw TestSupportError("no name in \(line)") }
            #expect(read.unicodeScalars.elementsEqual(name.unicodeScalars))
            #expect(object["count"] == .number(Double(value)))
            #expect(line.utf8.contains(UInt8(ascii: "\\")) == (value < 0x20 || scalar == "\"" || scalar == "\\"))
        }
    }
}

@Suite struct GoalTests {
    private func burst(_ name: String) throws -> Burst {
        Burst(Notification(name: try NotifyName(name), time: makeTime(seconds: 0, nanoseconds: 0), moment: 0))
    }

    private func heard(_ posts: [String], _ subject: Subject, _ change: (inout WaitSettings) -> Void) throws -> Int? {
        var settings = WaitSettings()
        change(&settings)
        var goal = Goal(subject, settings)
        for (index, post) in posts.enumerated() where goal.isReached(by: try burst(post)) { return index + 1 }
        return nil
    }

    @Test func `the wait is over after one, after N, after each, or never`() throws {
        func subject(_ operands: String...) throws -> Subject {
            try Subject(operands.compactMap { Argument(copying: $0) }, isLiteral: false)
        }
        let names = try subject("a", "b", "b")
        #expect(try heard(["a"], names) { _ in } == 1)
        #expect(try heard(["a", "a", "a"], names) { $0.count = 3 } == 3)
        #expect(try heard(["a", "a", "b"], names) { $0.wantsAll = true } == 3)
        #expect(try heard(["b", "b"], names) { $0.wantsAll = true } == nil)
        #expect(try heard(Array(repeating: "a", count: 1000), names) { $0.follows = true } == nil)
        let patterns = try subject("a.*", "b.*")
        #expect(try heard(["a.1", "a.2", "b.1"], patterns) { $0.wantsAll = true } == 3)
        let mixed = try subject("a.*", "c", "a.1", "*")
        #expect(try heard(["c", "a.2", "a.1"], mixed) { $0.wantsAll = true } == 3)
    }
}

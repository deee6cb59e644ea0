// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What is printed for a notification.
@Suite struct RecordTests {
    private static let oddNames = [
        "plain", #"quote " and backslash \ and slash /"#, "tab\tline\nreturn\rbell\u{7}escape\u{1b}",
        "caf\u{e9} \u{1f514}",
        "\u{1}\u{1f}\u{7f}", "\u{8}\u{c}", "\u{2028}", "{\"name\":1}",
    ]

    @Test(arguments: anyBusKind())
    func `--json is an object a line, whatever the name is made of`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let names = Self.oddNames
        let waiting = try bus.startWaiting(["--json", "-n", "\(names.count)"] + names)
        let before = presentSecond()
        let center = bus.makeCenter()
        for name in names { try center.postOnceConnected(NotifyName(name)) }
        let result = try waiting.wait()
        let after = presentSecond()
        #expect(result.status == 0)
        try #require(result.lines.count == names.count)
        for (index, line) in result.lines.enumerated() {
            let object = try JSONReader.object(line)
            #expect(object.keys.sorted() == ["count", "name", "time"])
            #expect(object["name"] == .string(names[index]))
            #expect(object["count"] == .number(Double(index + 1)))
            guard case .string(let time) = object["time"] else { throw TestSupportError("no time in \(line)") }
            let moment = try #require(seconds(ofTime: time), "\(time)")
            #expect(moment >= before && moment <= after)
        }
    }

    @Test(arguments: anyBusKind())
    func `--format writes all its sequences`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let format = #"%c of %n%%\t100%%\\n\n<%n>\0é"#
        let waiting = try bus.startWaiting(["--format", format, "-n2", "a", "%n"])
        let center = bus.makeCenter()
        try center.postOnceConnected("a")
        try center.postOnceConnected("%n")
        #expect(try waiting.wait().output == "1 of a%\t100%\\n\n<a>\0é\n" + "2 of %n%\t100%\\n\n<%n>\0é\n")
    }

    @Test(
        arguments: anyBusKind(),
        [("UTC0", "+00:00"), ("XST-5:30", "+05:30"), ("YST3:30", "-03:30"), ("ZST12", "-12:00")]
    )
    func `%t is the local time by RFC 3339`(kind: BusKind, zone: (name: String, offset: String)) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["--format", "%t", "a"], environment: ["TZ": zone.name])
        let before = presentSecond()
        try bus.makeCenter().postOnceConnected("a")
        let line = try #require(try waiting.wait().lines.first)
        #expect(line.hasSuffix(zone.offset))
        let moment = try #require(seconds(ofTime: line), "\(line)")
        #expect(moment >= before && moment <= presentSecond())
    }

    @Test(arguments: anyBusKind())
    func `-0 ends each record with NUL, alone or with a format`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let cases = [
            (["-0"], "a\nb\0a\nb\0"), (["--null", "--format", "<%n>"], "<a\nb>\0<a\nb>\0"),
            (["-0", "--format", ""], "\0\0"), (["--format", ""], "\n\n"),
        ]
        for (options, expected) in cases {
            let waiting = try bus.startWaiting(options + ["-n2", "a\nb"])
            let center = bus.makeCenter()
            for _ in 1...2 { try center.postOnceConnected(NotifyName("a\nb")) }
            #expect(try waiting.wait().output == expected)
        }
    }

    @Test(arguments: anyBusKind())
    func `-q prints no names`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["-q", "-n2", "a"])
        let center = bus.makeCenter()
        for _ in 1...2 { try center.postOnceConnected("a") }
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.output == "" && result.errorOutput == "")
    }

    @Test(arguments: anyBusKind())
    func `a record longer than a pipe is written whole`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let filler = String(repeating: "0123456789", count: 12_000)
        let waiting = try bus.startWaiting(["-n2", "--format", filler + "%n", "a"])
        let center = bus.makeCenter()
        for _ in 1...2 { try center.postOnceConnected("a") }
        #expect(try waiting.wait().output == filler + "a\n" + filler + "a\n")
    }
}

/// The seconds since 1970 of a time such as `2026-01-31T12:34:56.789+01:00`; nil if it does not look so.
private func seconds(ofTime text: String) -> Int? {
    let bytes = Array(text.utf8)
    let pattern = Array("dddd-dd-ddTdd:dd:dd.dddsdd:dd".utf8)
    guard bytes.count == pattern.count else { return nil }
    for (byte, expected) in zip(bytes, pattern) {
        switch expected {
        case UInt8(ascii: "d"): guard (0x30...0x39).contains(byte) else { return nil }
        case UInt8(ascii: "s"): guard byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") else { return nil }
        default: guard byte == expected else { return nil }
        }
    }
    func number(_ range: Range<Int>) -> Int { bytes[range].reduce(0) { $0 * 10 + Int($1) - 0x30 } }
    var time = tm()
    time.tm_year = Int32(number(0..<4) - 1900)
    time.tm_mon = Int32(number(5..<7) - 1)
    time.tm_mday = Int32(number(8..<10))
    time.tm_hour = Int32(number(11..<13))
    time.tm_min = Int32(number(14..<16))
    time.tm_sec = Int32(number(17..<19))
    let offset = number(24..<26) * 3600 + number(27..<29) * 60
    return timegm(&time) - (bytes[23] == UInt8(ascii: "-") ? -offset : offset)
}

/// The present time in whole seconds since 1970. time(2) may lag behind what a program has just read.
private func presentSecond() -> time_t {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time.tv_sec
}

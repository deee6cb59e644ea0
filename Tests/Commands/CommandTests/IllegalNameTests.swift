// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import TestSupport
import Testing

@Suite struct IllegalNameTests {
    /// An illegal name in bash's notation, and what the message about it says.
    struct IllegalName: CustomTestStringConvertible {
        let spelling: String
        let reason: String
        var testDescription: String { spelling }
    }

    // An argument can't contain a NUL: it ends there.
    static let names = [
        IllegalName(spelling: "''", reason: "The name is empty"),
        IllegalName(spelling: "$(printf 'x%.0s' {1..512})", reason: "The name has 512 bytes; at most 511"),
        IllegalName(spelling: "$(printf 'x%.0s' {1..100000})", reason: "The name has 100000 bytes; at most 511"),
        IllegalName(spelling: "$(printf '\u{e9}%.0s' {1..256})", reason: "The name has 512 bytes; at most 511"),
        IllegalName(spelling: "$'caf\\xe9'", reason: "not valid UTF-8"),
        IllegalName(spelling: "$'\\xff'", reason: "not valid UTF-8"),
        IllegalName(spelling: "$'overlong \\xc0\\xaf'", reason: "not valid UTF-8"),
        IllegalName(spelling: "$'surrogate \\xed\\xa0\\x80'", reason: "not valid UTF-8"),
        IllegalName(spelling: "$'cut off \\xe2\\x82'", reason: "not valid UTF-8"),
    ]

    @Test(arguments: commands, names)
    func `an illegal name is a usage error and a sentence, with or without a bus`(
        command: String,
        name: IllegalName
    ) throws {
        let result = try run(
            "bash",
            ["-c", "\"$1\" --address \(nowhere) \(name.spelling)", "bash", productPath(command)]
        )
        #expect(result.status == 64)
        #expect(result.output == "")
        #expect(result.errorOutput.hasPrefix("\(command): '"))
        #expect(result.errorOutput.contains(" is not a valid name"))
        #expect(result.errorOutput.contains(name.reason))
        #expect(result.errorOutput.hasSuffix(".\n"))
        #expect(result.errorOutput.utf8.count < 400, "the name is quoted in full")
        #expect(result.errorOutput.unicodeScalars.filter { $0 == "\n" }.count == 1)
    }

    @Test(arguments: busKinds)
    func `nothing is posted if one argument is not a name`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = Recorder<String>()
        let observation = try center.addObserver(matching: .everything, timeout: .seconds(25)) {
            heard.appendFromBus($0.string)
        }
        for bad in ["''", "$'\\xff'", "$(printf 'x%.0s' {1..512})"] {
            let result = try bus.script("echo from.stdin | notify-post com.example.good - \(bad) com.example.other")
            #expect(result.status == 64)
            #expect(result.errorOutput.contains("nothing was posted"))
        }
        try center.postOnceConnected("com.example.end")
        try #require(heard.wait { $0.last == "com.example.end" })
        #expect(heard.elements == ["com.example.end"])
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `an input line that is not a name is reported by its number, and the others are posted`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = Recorder<String>()
        let observation = try center.addObserver(matching: .everything, timeout: .seconds(25)) {
            heard.appendFromBus($0.string)
        }
        let result = try bus.script(
            #"""
            { printf 'one\n'; printf '\n'; printf 'three\n'; printf 'x%.0s' {1..512}; printf '\n'; printf 'caf\xe9\n'
              printf 'nul\0here\n'; printf 'x%.0s' {1..200000}; printf '\n'; printf ' eight \n'; printf 'y%.0s' {1..511}
            } | notify-post --literal -
            """#
        )
        #expect(result.status == 1)
        let complaints = result.errorOutput.split(separator: "\n").map(String.init)
        try #require(complaints.count == 5)
        let expected = [
            (2, "The name is empty"), (4, "a name has at most 511 bytes"), (5, "not valid UTF-8"),
            (6, "contains a NUL byte"), (7, "a name has at most 511 bytes"),
        ]
        for (complaint, (line, reason)) in zip(complaints, expected) {
            #expect(complaint.hasPrefix("notify-post: line \(line): "))
            #expect(complaint.contains(reason))
        }
        try center.postOnceConnected("end")
        try #require(heard.wait { $0.last == "end" })
        #expect(heard.elements == ["one", "three", " eight ", String(repeating: "y", count: 511), "end"])
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `any UTF-8 without NUL of up to 511 bytes is a name, and comes out as it went in`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let names = [
            String(repeating: "\u{e9}", count: 255) + "!", "-", " ", "\t", "\n", "\r", "\u{1b}[31m", "\u{7f}",
            "com..example.", "\u{1f514} \u{202e}", "'\"\\$(false)", "%n", "COM.example", "com.example",
        ]
        let waiting = try bus.startWaiting(["--literal", "-n", "\(names.count)", "-0"] + names)
        let posting = try bus.run("notify-post", ["--literal", "--"] + names)
        #expect(posting.status == 0 && posting.errorOutput == "")
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.output.unicodeScalars.elementsEqual(names.map { $0 + "\0" }.joined().unicodeScalars))
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyAgent
import TestSupport
import Testing

/// The agent and the observers are real. A socket of this test takes sway's place, with the protocol of sway-ipc(7).
@Suite struct SwaySourceTests {
    private func makeScene(_ sway: FakeSway) throws -> Scene {
        try Scene(
            .daemon,
            configuration: "focus = background\n",
            environment: ["SWAYSOCK": sway.path, "WAYLAND_DISPLAY": "wayland-1", "DISPLAY": ":0"]
        )
    }

    @Test func `the program of the focused window is in front; on an empty workspace no program is`() throws {
        let sway = try FakeSway()
        let scene = try makeScene(sway)
        let (one, other) = (try scene.startObserver(), try scene.startObserver())
        let talk = try sway.accept()
        try talk.greet(focused: one.pid)
        try scene.wait(for: ["\(one.pid) foreground sway", "\(other.pid) background sway"])
        talk.focus(other.pid)
        try scene.wait(for: ["\(one.pid) background sway", "\(other.pid) foreground sway"])
        talk.send(SwayWire.Kind.workspaceEvent, #"{"change": "focus", "current": {}, "old": null}"#)
        try talk.answerTree(focused: 0)
        try scene.wait(for: ["\(one.pid) background sway", "\(other.pid) background sway"])
        // Events without a change cause no request: the next one is due to the closed window.
        talk.send(SwayWire.Kind.windowEvent, #"{"change": "title", "container": {"pid": \#(other.pid)}}"#)
        talk.send(SwayWire.Kind.windowEvent, #"{"change": "close", "container": {"pid": \#(other.pid)}}"#)
        try talk.answerTree(focused: one.pid)
        try scene.wait(for: ["\(one.pid) foreground sway", "\(other.pid) background sway"])
    }

    @Test func `six hundred changes settle on the last, and sway's death harms no other program`() throws {
        let sway = try FakeSway()
        let scene = try makeScene(sway)
        let (one, other) = (try scene.startObserver(), try scene.startObserver())
        var talk: FakeSway.Talk? = try sway.accept()
        try talk?.greet(focused: one.pid)
        let pair =
            SwayWire.message(SwayWire.Kind.windowEvent, FakeSway.focusEvent(one.pid))
            + SwayWire.message(SwayWire.Kind.windowEvent, FakeSway.focusEvent(other.pid))
        for _ in 0..<6 { talk?.send(Array(repeatElement(pair, count: 50).joined())) }
        try scene.wait(for: ["\(one.pid) background sway", "\(other.pid) foreground sway"], timeout: .patience)
        try scene.waitForStatus("sway     live  601 facts: process \(other.pid)")
        talk = nil
        try scene.waitForStatus("sway     off   601 facts: sway went away")
        try scene.wait(for: ["\(one.pid) foreground default", "\(other.pid) foreground default"])
        // It comes back again.
        talk = try sway.accept()
        try talk?.greet(focused: one.pid)
        try scene.wait(for: ["\(one.pid) foreground sway", "\(other.pid) background sway"])
    }

    @Test func `invalid answers end the connection, and sway is asked again later`() throws {
        let sway = try FakeSway()
        let scene = try makeScene(sway)
        let observer = try scene.startObserver()
        let lies: [(sentence: String, tell: (FakeSway.Talk) -> Void)] = [
            ("is not sway", { $0.send(Array("HTTP/1.1 400 Bad Request".utf8)) }),
            ("is not sway", { $0.send(SwayWire.magic + [0xff, 0xff, 0xff, 0xff, 4, 0, 0, 0]) }),
            ("sent something unintelligible", { $0.send(SwayWire.Kind.windowEvent, "{\"change\": \"focus\"") }),
            (
                "sent something unintelligible",
                { $0.send(SwayWire.Kind.windowEvent, String(repeating: "[", count: 100_000)) }
            ),
            ("does not report which process", { $0.focus(-1) }),
        ]
        for (sentence, tell) in lies {
            let talk = try sway.accept()
            tell(talk)
            // It has disconnected once nothing more comes.
            while try talk.next() != nil {}
            try scene.waitForStatus(sentence)
        }
        let talk = try sway.accept()
        try talk.greet(focused: 1)
        try scene.wait(for: ["\(observer.pid) background sway"])
    }
}

/// How sway's messages are read, without a bus.
@Suite struct SwayWireTests {
    @Test func `a message is taken once it is complete, and anything else is refused`() throws {
        let bytes = SwayWire.message(4, #"{"pid": 7}"#) + SwayWire.message(0x8000_0003, "") + SwayWire.message(2, "[]")
        for size in 1...bytes.count {
            var reader = SwayReader()
            var found: [SwayWire.Message] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                found += try reader.take(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            #expect(
                found == [
                    .init(kind: 4, payload: .object(["pid": .number(7)])), .init(kind: 0x8000_0003, payload: nil),
                    .init(kind: 2, payload: .array([])),
                ]
            )
        }
        func fault(of bytes: [UInt8]) -> SwayWire.Fault? {
            var reader = SwayReader()
            do throws(SwayWire.Fault) { _ = try reader.take(bytes) } catch { return error }
            return nil
        }
        #expect(fault(of: Array("i4-ipc".utf8)) == .noSuchProtocol)
        #expect(fault(of: SwayWire.magic + [1, 0, 0, 1, 0, 0, 0, 0]) == .tooLong(16_777_217))
    }

    @Test func `the focused window's process is found at any depth; a focused workspace has none`() throws {
        for process: Int32 in [0, 5, 99_999] {
            let tree = try #require(JSONValue(Array(FakeSway.tree(focused: process).utf8)))
            let expected: SwayWire.Focus =
                process == 0 ? .nobody : .window(DesktopWindow(pid: process, application: ""))
            #expect(SwayWire.focusedWindow(in: tree) == expected)
        }
        // i3 reports no process.
        let tree = try #require(JSONValue(Array(#"{"type":"con","focused":true,"window":3}"#.utf8)))
        #expect(SwayWire.focusedWindow(in: tree) == .unknown)
        #expect(SwayWire.focusedWindow(in: .null) == .nobody)
    }

    @Test func `JSON is read as RFC 8259 defines it, and nothing else is accepted`() {
        let good: [(String, JSONValue)] = [
            (" null ", .null), ("[]", .array([])), ("{}", .object([:])), ("-0.5e+1", .number(-5)), ("0", .number(0)),
            (
                #"{"a":[true,false,{"b":"\"\\\/\b\f\n\r\t\u00E9\uD83D\uDE00é"}]}"#,
                .object([
                    "a": .array([.boolean(true), .boolean(false), .object(["b": .string("\"\\/\u{8}\u{c}\n\r\té😀é")])])
                ])
            ),
            (#"{"a":1,"a":2}"#, .object(["a": .number(2)])),
        ]
        for (text, value) in good { #expect(JSONValue(Array(text.utf8)) == value, "\(text)") }
        let bad = [
            "", " ", "nul", "nulls", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "01", "+1", "1.",
            ".5",
            "1e", "- 1", "\"\n\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"abc", "[", "]", "[}",
            "1 1", "\u{feff}1", "NaN", "\"\\",
        ]
        for text in bad { #expect(JSONValue(Array(text.utf8)) == nil, "\(text)") }
        #expect(JSONValue(Array((String(repeating: "[", count: 127) + String(repeating: "]", count: 127)).utf8)) != nil)
        #expect(JSONValue([UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)) == nil)
    }

    @Test func `a text that takes much memory is refused, and unwanted parts take none`() {
        func read(_ texts: [String], keeping keys: Set<String>?) -> JSONValue? {
            var reader = JSONReader(keeping: keys)
            for text in texts where !reader.take(Array(text.utf8)[...]) { return nil }
            return reader.finish()
        }
        let numbers = Array(repeating: String(repeating: "1,", count: 10_000), count: 30)
        #expect(read(["["] + numbers + ["1]"], keeping: nil) == nil)
        #expect(
            read([#"{"a":["#] + numbers + [#"1],"b":{"c":2,"d":3}}"#], keeping: ["b", "d"])
                == .object(["a": .null, "b": .object(["d": .number(3)])])
        )
        let long = String(repeating: "x", count: 300_000)
        #expect(read(["\"", long, "\""], keeping: nil) == nil)
        #expect(
            read([#"{"a":""#, long, #"","b":"\u0041"}"#], keeping: ["b"]) == .object(["a": .null, "b": .string("A")])
        )
    }

    /// X11 programs choose them, in any encoding.
    @Test func `a window's title may have any bytes`() {
        #expect(JSONValue([0x22, 0x41, 0xe9, 0x22]) == .string("A\u{fffd}"))
    }

    @Test func `arbitrary bytes do no harm`() {
        var generator = SeededGenerator(seed: 7)
        let text = Array(FakeSway.focusEvent(77).utf8)
        for _ in 0..<5_000 {
            var bytes = text
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            if let value = JSONValue(bytes) { _ = SwayWire.focusedWindow(in: value) }
            var reader = SwayReader()
            _ = try? reader.take(SwayWire.magic + bytes)
        }
    }
}

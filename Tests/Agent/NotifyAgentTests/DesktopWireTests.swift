// SPDX-License-Identifier: Apache-2.0

import NotifyAgent
import TestSupport
import Testing

/// What niri, Hyprland and PulseAudio say, as they say it.
@Suite struct DesktopWireTests {
    // MARK: - niri

    private static func niri(_ lines: String...) throws -> NiriWire {
        var wire = NiriWire()
        for line in [#"{"Ok":"Handled"}"#] + lines { _ = try wire.take(line) }
        return wire
    }

    private static let windows = """
        {"WindowsChanged":{"windows":[{"id":1,"title":"a","app_id":"org.example.A","pid":11,"workspace_id":1,\
        "is_focused":true,"is_floating":false,"is_urgent":false},{"id":2,"title":"b","app_id":null,"pid":12,\
        "workspace_id":1,"is_focused":false,"is_floating":false,"is_urgent":false}]}}
        """

    @Test func `niri's events say which window has the focus, and of which process it is`() throws {
        var wire = try DesktopWireTests.niri(DesktopWireTests.windows)
        #expect(wire.window == DesktopWindow(pid: 11, application: "org.example.A"))
        #expect(try wire.take(#"{"WindowFocusChanged":{"id":2}}"#))
        #expect(wire.window == DesktopWindow(pid: 12, application: ""))
        #expect(try wire.take(#"{"WindowFocusChanged":{"id":null}}"#) && wire.window == nil)
        let opened = #"{"WindowOpenedOrChanged":{"window":{"id":3,"app_id":"c","pid":null,"is_focused":true}}}"#
        #expect(try wire.take(opened) && wire.window == DesktopWindow(pid: 0, application: "c"))
        #expect(try wire.take(#"{"WindowClosed":{"id":3}}"#) && wire.window == nil)
        // Of a window that is not known yet nothing is said.
        #expect(try wire.take(#"{"WindowFocusChanged":{"id":9}}"#) && wire.window == nil)
        // Events of other kinds, those of later versions among them, are passed over.
        #expect(try !wire.take(#"{"KeyboardLayoutSwitched":{"idx":0}}"#))
        #expect(try !wire.take(#"{"SomethingNew":[1,2]}"#))
    }

    @Test func `what is not niri is refused`() throws {
        var wire = NiriWire()
        #expect(throws: NiriWire.Fault.refused) { try wire.take(#"{"Err":"no"}"#) }
        #expect(throws: NiriWire.Fault.unintelligible) { try wire.take("{}") }
        for line in [
            "", "[]", "{", "{}", #"{"WindowClosed":{}}"#, #"{"WindowsChanged":{"windows":[{}]}}"#,
            #"{"WindowsChanged":3}"#, #"{"WindowFocusChanged":null}"#, #"{"WindowOpenedOrChanged":{}}"#,
            #"{"WindowClosed":{"id":1},"WindowFocusChanged":{"id":1}}"#,
        ] {
            var wire = try DesktopWireTests.niri()
            #expect(throws: NiriWire.Fault.unintelligible, "\(line)") { try wire.take(line) }
        }
    }

    // MARK: - Hyprland

    @Test func `Hyprland's events say when to ask, and its answers which window has the focus`() {
        for line in ["activewindowv2>>55d1c7a3bd40", "activewindowv2>>", "closewindow>>55d1", "fullscreen>>1"] {
            #expect(HyprlandWire.concernsFocus(Array(line.utf8)))
        }
        for line in ["", "activewindow>>kitty,~", "windowtitle>>55d1", "activelayout>>a,b"] {
            #expect(!HyprlandWire.concernsFocus(Array(line.utf8)))
        }
        let answer = #"{"address":"0x55d1","class":"kitty","title":"~","pid":4711,"fullscreen":0,"fullscreenClient":0}"#
        #expect(
            HyprlandWire.answer(JSONValue(Array(answer.utf8)))
                == .window(DesktopWindow(pid: 4_711, application: "kitty", isFullscreen: false))
        )
        for (mode, isFullscreen) in [("0", false), ("1", false), ("2", true), ("3", true), ("true", true)] {
            #expect(
                HyprlandWire.answer(JSONValue(Array(#"{"pid":7,"class":"a","fullscreen":\#(mode)}"#.utf8)))
                    == .window(DesktopWindow(pid: 7, application: "a", isFullscreen: isFullscreen))
            )
        }
        #expect(HyprlandWire.answer(JSONValue(Array("{}".utf8))) == .nobody)
        #expect(HyprlandWire.answer(JSONValue(Array(#"{"pid":-1}"#.utf8))) == .nobody)
        for nonsense in ["", "unknown request", "[]", #"{"class":"kitty"}"#, #"{"pid":"7"}"#] {
            #expect(HyprlandWire.answer(JSONValue(Array(nonsense.utf8))) == nil)
        }
    }

    // MARK: - PulseAudio

    /// An answer about one stream, as PulseAudio gives it to a client of version 20.
    static func stream(pid: String, isPaused: Bool) -> [UInt8] {
        func number(_ value: UInt32) -> [UInt8] { [UInt8(ascii: "L")] + plain(value) }
        func text(_ value: String) -> [UInt8] { [UInt8(ascii: "t")] + value.utf8 + [0] }
        func property(_ key: String, _ value: String) -> [UInt8] {
            let bytes = Array(value.utf8) + [0]
            return text(key) + number(UInt32(bytes.count)) + [UInt8(ascii: "x")] + plain(UInt32(bytes.count)) + bytes
        }
        var bytes = number(5) + text("Playback") + number(.max) + number(3) + number(0)
        bytes += [UInt8(ascii: "a"), 3, 2] + plain(44_100) + [UInt8(ascii: "m"), 2, 1, 2]
        bytes += [UInt8(ascii: "v"), 2] + plain(65_536) + plain(65_536)
        for _ in 0..<2 { bytes += [UInt8(ascii: "U")] + [UInt8](repeating: 0, count: 8) }
        bytes += [UInt8(ascii: "N")] + text("protocol-native.c") + [UInt8(ascii: "0"), UInt8(ascii: "P")]
        bytes += property("application.name", "paplay") + property("application.process.id", pid)
        return bytes + [UInt8(ascii: "N"), UInt8(ascii: isPaused ? "1" : "0"), UInt8(ascii: "1"), UInt8(ascii: "1")]
    }

    static func plain(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

    @Test func `a program with a stream that is not paused plays`() throws {
        let answer =
            DesktopWireTests.stream(pid: "7", isPaused: false) + DesktopWireTests.stream(pid: "8", isPaused: true)
            + DesktopWireTests.stream(pid: "what", isPaused: false)
        #expect(try PulseWire.players(in: answer) == [7])
        #expect(try PulseWire.players(in: []) == [])
    }

    @Test func `no answer, however it is cut or changed, does harm`() throws {
        let answer = DesktopWireTests.stream(pid: "7", isPaused: false)
        for end in 1..<answer.count {
            #expect(throws: PulseWire.Fault.self) { try PulseWire.players(in: Array(answer[..<end])) }
        }
        var random = SeededGenerator(seed: 5)
        for _ in 0..<20_000 {
            var bytes = answer
            for _ in 0...Int.random(in: 0...3, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            _ = try? PulseWire.players(in: bytes)
        }
    }

    @Test func `messages are taken off the stream one by one, and what is no message is noticed`() throws {
        func message(_ body: [UInt8], channel: UInt32 = .max) -> [UInt8] {
            DesktopWireTests.plain(UInt32(body.count)) + DesktopWireTests.plain(channel)
                + [UInt8](repeating: 0, count: 12) + body
        }
        func body(_ command: UInt32, _ question: UInt32) -> [UInt8] {
            [command, question].flatMap { [UInt8(ascii: "L")] + DesktopWireTests.plain($0) }
        }
        var stream = message(body(2, 3) + [1, 2]) + message(body(66, .max)) + message([9, 9], channel: 0)
        stream += message(body(0, 0)) + message(body(61, 1))
        var found: [PulseWire.Message] = []
        var buffer: ArraySlice<UInt8> = []
        for byte in stream {
            buffer.append(byte)
            while let message = try PulseWire.take(from: &buffer) { found.append(message) }
        }
        #expect(found == [.reply(3, [1, 2]), .changed, .other, .error, .other] && buffer.isEmpty)
        var long = (DesktopWireTests.plain(.max) + [UInt8](repeating: 0xff, count: 16))[...]
        #expect(throws: PulseWire.Fault.unintelligible) { try PulseWire.take(from: &long) }
        var wrong = message([1, 2, 3])[...]
        #expect(throws: PulseWire.Fault.unintelligible) { try PulseWire.take(from: &wrong) }
    }
}

extension NiriWire {
    fileprivate mutating func take(_ line: String) throws -> Bool { try take(Array((line + "\n").utf8)) }
}

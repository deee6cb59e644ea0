// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Names are other people's words: on a terminal they must not steer it, and anywhere else they must be what was
/// posted.
@Suite struct TerminalTests {
    /// A title for the window, a forged line, a control of eight bits, and one that turns the text around.
    private static let nasty = "a\u{1b}]0;owned\u{7}\nforged \u{9b}2J\u{202e}b"

    /// What a command writes to a terminal, from here on.
    private func terminalOutput(of bus: PrivateBus, _ options: [String], posting name: String) throws -> String {
        let terminal = try PseudoTerminal()
        let waiting = try bus.startWaiting(options + [name], output: .descriptor(terminal.end))
        terminal.closeEnd()
        try bus.makeCenter().postOnceConnected(NotifyName(name))
        #expect(try waiting.wait().status == 0)
        return try terminal.readAll()
    }

    @Test(arguments: anyBusKind(), [[], ["--format", "%n"], ["-0"]])
    func `on a terminal a name is escaped, on one line`(kind: BusKind, options: [String]) throws {
        let output = try terminalOutput(of: PrivateBus(kind), options, posting: Self.nasty)
        let expected = #"a\x1b]0;owned\x07\nforged \u{9b}2J\u{202e}b"#
        #expect(output == expected + (options == ["-0"] ? "\0" : "\r\n"))
    }

    @Test(arguments: anyBusKind())
    func `JSON steers no terminal either`(kind: BusKind) throws {
        let output = try terminalOutput(of: PrivateBus(kind), ["--json"], posting: Self.nasty)
        #expect(output.hasPrefix(#"{"name":"a\u001b]0;owned\u0007\nforged \u009b2J\u202eb","#))
    }

    @Test(arguments: anyBusKind())
    func `in a pipe a name is what was posted, byte by byte`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for options in [[], ["--format", "%n"]] {
            let waiting = try bus.startWaiting(options + [Self.nasty])
            try bus.makeCenter().postOnceConnected(NotifyName(Self.nasty))
            #expect(try waiting.wait().output == Self.nasty + "\n")
        }
    }

    @Test(arguments: anyBusKind())
    func `a name in a message is escaped, and the command gets it as it is`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting([Self.nasty, "--", "sh", "-c", #"printf %s "$NOTIFY_NAME"; exit 3"#])
        try bus.makeCenter().postOnceConnected(NotifyName(Self.nasty))
        let result = try waiting.wait()
        #expect(result.output == Self.nasty)
        #expect(result.errorOutput.split(separator: "\n").count == 1)
        #expect(!result.errorOutput.contains("\u{1b}") && !result.errorOutput.contains("\u{202e}"))
    }
}

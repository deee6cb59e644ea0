// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

/// Names are other people's words: on a terminal they must not steer it, and anywhere else they must be what was posted.
@Suite struct TerminalTests {
    /// A title for the window, a forged line, a control of eight bits, and one that turns the text around.
    private static let nasty = "a\u{1b}]0;owned\u{7}\nforged \u{9b}2J\u{202e}b"

    /// What a command writes to a terminal, from here on.
    private func terminalOutput(of bus: PrivateBus, _ options: [String], posting name: String) throws -> String {
        let terminal = try Terminal()
        let waiting = try bus.startWaiting(options + [name], output: .descriptor(terminal.end))
        terminal.closeEnd()
        try bus.makeCenter().post(name: name)
        #expect(try waiting.wait().status == 0)
        return try terminal.readAll()
    }

    @Test(arguments: busKinds, [[], ["--format", "%n"], ["-0"]])
    func `on a terminal a name is escaped, on one line`(kind: BusKind, options: [String]) throws {
        let output = try terminalOutput(of: PrivateBus(kind), options, posting: Self.nasty)
        let expected = #"a\x1b]0;owned\x07\nforged \u{9b}2J\u{202e}b"#
        #expect(output == expected + (options == ["-0"] ? "\0" : "\r\n"))
    }

    @Test(arguments: busKinds)
    func `JSON steers no terminal either`(kind: BusKind) throws {
        let output = try terminalOutput(of: PrivateBus(kind), ["--json"], posting: Self.nasty)
        #expect(output.hasPrefix(#"{"name":"a\u001b]0;owned\u0007\nforged \u009b2J\u202eb","#))
    }

    @Test(arguments: busKinds)
    func `in a pipe a name is what was posted, byte by byte`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for options in [[], ["--format", "%n"]] {
            let waiting = try bus.startWaiting(options + [Self.nasty])
            try bus.makeCenter().post(name: Self.nasty)
            #expect(try waiting.wait().output == Self.nasty + "\n")
        }
    }

    @Test(arguments: busKinds)
    func `a name in a message is escaped, and the command gets it as it is`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting([Self.nasty, "--", "sh", "-c", #"printf %s "$NOTIFY_NAME"; exit 3"#])
        try bus.makeCenter().post(name: Self.nasty)
        let result = try waiting.wait()
        #expect(result.output == Self.nasty)
        #expect(result.errorOutput.split(separator: "\n").count == 1)
        #expect(!result.errorOutput.contains("\u{1b}") && !result.errorOutput.contains("\u{202e}"))
    }
}

/// A pseudo-terminal: what is written to its end is read here as a screen would get it.
private final class Terminal {
    private let screen: Int32
    private(set) var end: Int32

    init() throws {
        screen = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        // TIOCSPTLCK and TIOCGPTN of <asm/ioctls.h>: unlockpt(3) and ptsname(3) are not in Swift's Glibc module.
        var (lock, number) = (Int32(0), UInt32(0))
        guard screen >= 0, ioctl(screen, 0x4004_5431, &lock) == 0, ioctl(screen, 0x8004_5430, &number) == 0 else {
            throw TestSupportError("Cannot make a terminal: error \(errno)")
        }
        end = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard end >= 0 else { throw TestSupportError("Cannot open the terminal: error \(errno)") }
    }

    deinit {
        closeEnd()
        close(screen)
    }

    func closeEnd() {
        if end >= 0 { close(end) }
        end = -1
    }

    /// All that was written, once nobody has the other end.
    func readAll() throws -> String {
        var bytes: [UInt8] = []
        while true {
            var source = pollfd(fd: screen, events: Int16(POLLIN), revents: 0)
            guard poll(&source, 1, 20_000) == 1 else { throw TestSupportError("The terminal is still open") }
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = read(screen, &chunk, chunk.count)
            // EIO when nobody has the other end.
            if count <= 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes += chunk[..<count]
        }
    }
}

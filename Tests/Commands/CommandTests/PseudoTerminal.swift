// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport

/// A pseudo-terminal: what is written to its end is read here as a screen would get it.
final class PseudoTerminal {
    private var screen: Int32
    private(set) var end: Int32
    private let path: String

    init(columns: UInt16 = 80, lines: UInt16 = 24) throws {
        screen = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        // TIOCSPTLCK and TIOCGPTN of <asm/ioctls.h>: unlockpt(3) and ptsname(3) are not in Swift's Glibc module.
        var (lock, number) = (Int32(0), UInt32(0))
        guard screen >= 0, ioctl(screen, 0x4004_5431, &lock) == 0, ioctl(screen, 0x8004_5430, &number) == 0 else {
            throw TestSupportError("Cannot make a terminal: error \(errno)")
        }
        path = "/dev/pts/\(number)"
        end = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
        // TIOCSWINSZ.
        var size = winsize(ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard end >= 0, ioctl(end, 0x5414, &size) == 0 else {
            throw TestSupportError("Cannot open the terminal: error \(errno)")
        }
    }

    deinit {
        closeEnd()
        hangUp()
    }

    /// As when the window of a terminal is closed.
    func hangUp() {
        if screen >= 0 { close(screen) }
        screen = -1
    }

    func closeEnd() {
        if end >= 0 { close(end) }
        end = -1
    }

    /// Whether it takes no line feed any more, because no process reads it. Before that it gets one.
    var isFull: Bool {
        let another = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        defer { close(another) }
        return Glibc.write(another, "\n", 1) < 0 && errno == EAGAIN
    }

    /// What was written, as soon as it contains a text.
    func read(until text: String, timeout: Int32 = 120_000) throws -> String {
        var bytes: [UInt8] = []
        while !String(decoding: bytes, as: UTF8.self).contains(text) {
            var source = pollfd(fd: screen, events: Int16(POLLIN), revents: 0)
            var chunk = [UInt8](repeating: 0, count: 4096)
            guard poll(&source, 1, timeout) == 1, case let count = Glibc.read(screen, &chunk, chunk.count), count > 0
            else { throw TestSupportError("Nobody wrote “\(text)”, but: \(String(decoding: bytes, as: UTF8.self))") }
            bytes += chunk[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Presses keys.
    func write(_ text: String) throws {
        guard Glibc.write(screen, text, text.utf8.count) == text.utf8.count else {
            throw TestSupportError("Cannot write to the terminal: error \(errno)")
        }
    }

    /// All that was written, once no process has the other end open.
    func readAll() throws -> String {
        var bytes: [UInt8] = []
        while true {
            var source = pollfd(fd: screen, events: Int16(POLLIN), revents: 0)
            guard poll(&source, 1, 120_000) == 1 else { throw TestSupportError("The terminal is still open") }
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = Glibc.read(screen, &chunk, chunk.count)
            // EIO when no process has the other end open.
            if count <= 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes += chunk[..<count]
        }
    }
}

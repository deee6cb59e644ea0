// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

/// The whole terminal, controlled by the ECMA-48 escape sequences that every current terminal supports, and termios(3).
struct Screen {
    private var saved: termios?
    private let output = NonblockingOutput(STDOUT_FILENO)
    /// What the terminal has not taken yet.
    private var rest: ArraySlice<UInt8> = []

    /// Takes over the terminal: the alternate screen, no cursor, and unbuffered keys.
    init() {
        var mode = termios()
        if tcgetattr(STDIN_FILENO, &mode) == 0 {
            saved = mode
            // ^C and ^Z are still signals.
            mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
            tcsetattr(STDIN_FILENO, TCSANOW, &mode)
        }
        // Lines that are too long, as with wide characters, are cut off instead of wrapped.
        write("\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l")
    }

    /// What poll(2) says of the terminal.
    enum Condition {
        case takesOutput
        /// As after ^S.
        case blocked
        /// Its window has been closed, or its connection has been lost.
        case gone
    }

    /// Whether the terminal takes output now, or will in a moment.
    var condition: Condition {
        var terminal = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&terminal, 1, 20) == 1 else { return .blocked }
        return Int32(terminal.revents) & (POLLHUP | POLLERR) == 0 ? .takesOutput : .gone
    }

    /// Restores the terminal, as far as that can be done without waiting for it.
    mutating func leave() {
        if condition == .takesOutput { write("\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l") }
        if var saved { tcsetattr(STDIN_FILENO, TCSANOW, &saved) }
    }

    /// Whether part of the last page has not been drawn.
    var isPending: Bool { !rest.isEmpty }

    /// Draws lines, which must fit, in a single write and without flicker, if the terminal takes that much.
    mutating func draw(_ lines: [String]) {
        write("\u{1b}[H" + lines.map { $0 + "\u{1b}[K" }.joined(separator: "\r\n") + "\u{1b}[J")
    }

    /// The keys that were pressed; nil at the end of the input.
    func keys() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(STDIN_FILENO, &bytes, bytes.count)
        return count > 0 ? Array(bytes[..<count]) : count < 0 && errno == EINTR ? [] : nil
    }

    /// Draws what is pending, as far as the terminal takes it.
    mutating func flush() {
        while isPending {
            let count = rest.withUnsafeBytes { output.write($0) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                return
            }
        }
    }

    private mutating func write(_ text: String) {
        rest += text.utf8
        flush()
    }
}

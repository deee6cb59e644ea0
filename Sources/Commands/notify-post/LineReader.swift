// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

/// Reads lines that end with LF (optional on the last one), in constant memory.
///
/// A carriage return is an ordinary byte: a name may contain one.
final class LineReader {
    enum Line {
        /// Without the LF; valid until the next call.
        case line(UnsafeRawBufferPointer)
        /// A line longer than any name; the whole line has been skipped.
        case overlong
        case end
        /// No complete line is available without waiting; only returned if the caller does not wait.
        case dry
        case timedOut
        case failed(errno: Int32)
    }

    /// The longest line that is returned, in bytes: the longest name.
    static let longest = 511

    private let descriptor: Int32
    private let buffer: UnsafeMutableRawBufferPointer
    /// What has been read but not returned: `buffer[start..<end]`.
    private var start = 0
    private var end = 0
    private var isSkipping = false
    private var isAtEnd = false
    /// When to stop waiting for input.
    private let deadline: Deadline?

    init(descriptor: Int32, deadline: Deadline? = nil) {
        self.descriptor = descriptor
        self.deadline = deadline
        buffer = .allocate(byteCount: 64 << 10, alignment: 16)
    }

    deinit {
        buffer.deallocate()
    }

    /// The next line. It never waits for more than one line of input, so typed names are posted one by one.
    ///
    /// - Parameter waits: whether to wait if no complete line is available yet.
    func next(waits: Bool = true) -> Line {
        while true {
            let rest = UnsafeRawBufferPointer(rebasing: buffer[start..<end])
            if let base = rest.baseAddress, let lineFeed = memchr(base, 0x0a, rest.count) {
                let length = base.distance(to: UnsafeRawPointer(lineFeed))
                start += length + 1
                return hand(UnsafeRawBufferPointer(rebasing: rest[..<length]))
            }
            if rest.count > Self.longest {
                isSkipping = true
                end = start
            }
            if isAtEnd {
                start = end
                return rest.isEmpty && !isSkipping ? .end : hand(rest)
            }
            if !isReadable(within: waits ? deadline?.milliseconds ?? -1 : 0) {
                if !waits { return .dry }
                // poll(2) can't wait longer than 24 days, and a signal ends it too.
                if let deadline, deadline.hasPassed { return .timedOut }
                continue
            }
            if let error = fill() {
                return .failed(errno: error)
            }
        }
    }

    private func hand(_ line: UnsafeRawBufferPointer) -> Line {
        defer { isSkipping = false }
        return isSkipping || line.count > Self.longest ? .overlong : .line(line)
    }

    /// - Parameter time: how long to wait, in milliseconds; -1 for ever.
    private func isReadable(within time: Int32) -> Bool {
        var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&source, 1, time) > 0
    }

    /// Reads what is there, appending to what is left of the last line. Returns an error number if that fails.
    private func fill() -> Int32? {
        if start > 0 {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<end]))
            end -= start
            start = 0
        }
        while true {
            let free = UnsafeMutableRawBufferPointer(rebasing: buffer[end...])
            let count = read(descriptor, free.baseAddress, free.count)
            if count >= 0 {
                end += count
                isAtEnd = count == 0
                return nil
            }
            switch errno {
            case EINTR: continue
            // Another reader was quicker.
            case EAGAIN: return nil
            default: return errno
            }
        }
    }
}

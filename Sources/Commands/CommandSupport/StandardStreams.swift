// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Standard input, output and error, without the buffers of `<stdio.h>`.
package enum StandardStreams {
    /// Whether standard output is a terminal, which text from others must not control.
    package static let outputIsTerminal = isatty(STDOUT_FILENO) == 1

    /// The result of a write.
    package enum WriteResult: Equatable {
        case written
        /// The reader has gone (`EPIPE`), which is normal for `| head -1`.
        case readerGone
        /// The reader has stopped reading, and something else is due.
        case gaveUp
        case failed(errno: Int32)
    }

    /// What ends the wait for a reader.
    private struct Patience {
        var signals: Int32 = -1
        var deadline = Int64.max
    }

    private static let patience = Mutex(Patience())

    /// Must be called first of all.
    ///
    /// Descriptors 0 to 2 that the parent has closed are opened, in the wrong direction so that using them still fails;
    /// otherwise the socket to the bus would become standard output. SIGPIPE is ignored in favor of `EPIPE`.
    package static func prepare() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
        signal(SIGPIPE, SIG_IGN)
    }

    /// From now on a reader that has stopped reading is waited for only until the deadline, or one of the signals, if
    /// they no longer end the process by themselves.
    package static func wait(until deadline: Int64?, or signals: Signals? = nil) {
        patience.withLock { $0 = Patience(signals: signals?.descriptor ?? -1, deadline: deadline ?? .max) }
    }

    /// Waits until a descriptor can be written to.
    ///
    /// - Returns: false if something else is due, or the limit has passed.
    package static func wait(for descriptor: Int32, within limit: Duration? = nil) -> Bool {
        let patience = patience.withLock { $0 }
        let now = Clock.monotonic
        // A reader that is well takes milliseconds, even for what is written when the time is over.
        let end = min(max(patience.deadline, now + 100_000_000), limit.map { now + $0.inNanoseconds } ?? .max)
        var sources = [
            pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0),
            pollfd(fd: patience.signals, events: Int16(POLLIN), revents: 0),
        ]
        let timeout = end == .max ? -1 : Int32(clamping: (end - now + 999_999) / 1_000_000)
        return poll(&sources, 2, timeout) != 0 && sources[1].revents == 0
    }

    /// Sleeps for some milliseconds, and returns whether what ends the wait for a reader is due by then.
    package static func isDue(within milliseconds: Int32) -> Bool {
        let patience = patience.withLock { $0 }
        var source = pollfd(fd: patience.signals, events: Int16(POLLIN), revents: 0)
        return poll(&source, 1, milliseconds) != 0 || patience.deadline <= Clock.monotonic
    }

    /// Writes all of `text`, in one call unless the kernel accepts less.
    package static func write(_ text: String, to descriptor: Int32, within limit: Duration? = nil) -> WriteResult {
        var text = text
        return text.withUTF8 { write(UnsafeRawBufferPointer($0), to: descriptor, within: limit) }
    }

    /// - Parameter limit: how long to wait each time that the reader has stopped reading.
    package static func write(
        _ bytes: UnsafeRawBufferPointer,
        to descriptor: Int32,
        within limit: Duration? = nil
    ) -> WriteResult {
        let output = NonblockingOutput(descriptor)
        var rest = bytes[...]
        var isStuck = false
        while !rest.isEmpty {
            let count = output.write(UnsafeRawBufferPointer(rebasing: rest))
            if count >= 0 {
                rest = rest.dropFirst(count)
                isStuck = false
                continue
            }
            switch errno {
            case EINTR: continue
            case EPIPE: return .readerGone
            case EAGAIN:
                // A terminal with room for one byte is writable, but takes no line feed.
                if isStuck { poll(nil, 0, 10) }
                isStuck = true
                if !wait(for: descriptor, within: limit) { return .gaveUp }
            default: return .failed(errno: errno)
            }
        }
        return .written
    }
}

/// Standard output, if it is a terminal.
package enum Terminal {
    /// The number of columns and lines; nil if it is not a terminal. A terminal that does not say has 80 and 24.
    package static var size: (columns: Int, lines: Int)? {
        guard StandardStreams.outputIsTerminal else { return nil }
        var size = winsize()
        // TIOCGWINSZ of <asm/ioctls.h>.
        guard ioctl(STDOUT_FILENO, 0x5413, &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Whether to use colours: on a terminal that supports them, unless `NO_COLOR` is set; see https://no-color.org.
    package static let hasColors: Bool = {
        func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
        return StandardStreams.outputIsTerminal && variable("NO_COLOR").isEmpty
            && !["", "dumb"].contains(variable("TERM"))
    }()
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Standard input, output and error, without the buffers of `<stdio.h>`.
package enum StandardStreams {
    /// Whether standard output is a terminal, which text from others must not control.
    package static let outputIsTerminal = isatty(STDOUT_FILENO) == 1

    /// The result of a write.
    package enum WriteResult: Equatable {
        case written
        /// The reader has gone (`EPIPE`), which is normal for `| head -1`.
        case readerGone
        case failed(errno: Int32)
    }

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

    /// Writes all of `text`, in one call unless the kernel accepts less.
    package static func write(_ text: String, to descriptor: Int32) -> WriteResult {
        var text = text
        return text.withUTF8 { write(UnsafeRawBufferPointer($0), to: descriptor) }
    }

    package static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> WriteResult {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest)
            let count = Glibc.write(descriptor, part.baseAddress, part.count)
            if count >= 0 {
                rest = rest.dropFirst(count)
                continue
            }
            switch errno {
            case EINTR: continue
            case EPIPE: return .readerGone
            case EAGAIN:
                // Somebody else has made the descriptor non-blocking.
                var writable = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&writable, 1, -1)
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

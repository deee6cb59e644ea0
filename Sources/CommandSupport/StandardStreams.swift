// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Standard input, output and error, without the buffers of `<stdio.h>`.
package enum StandardStreams {
    /// Whether standard output is a terminal, which what others have written must not steer.
    package static let outputIsTerminal = isatty(STDOUT_FILENO) == 1

    /// How a write went.
    package enum WriteResult: Equatable {
        case written
        /// Whoever read it is gone (`EPIPE`), which for `| head -1` is how it should be.
        case readerGone
        case failed(errno: Int32)
    }

    /// Call this first of all.
    ///
    /// Descriptors 0 to 2 that the parent has closed are filled, the wrong way round so that their use still fails;
    /// otherwise the socket to the bus would become standard output. SIGPIPE is ignored in favor of `EPIPE`.
    package static func prepare() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
        signal(SIGPIPE, SIG_IGN)
    }

    /// Writes all of `text`, in one call unless the kernel takes less.
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
                // A descriptor that somebody else has made non-blocking.
                var writable = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&writable, 1, -1)
            default: return .failed(errno: errno)
            }
        }
        return .written
    }
}

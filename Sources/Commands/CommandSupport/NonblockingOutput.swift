// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A descriptor that is written to without blocking.
///
/// `O_NONBLOCK` is not for a descriptor that others may share: it would be theirs, too.
package final class NonblockingOutput {
    private let descriptor: Int32
    /// The same pipe or terminal, opened again; negative if there is none, or it can't be.
    private let own: Int32
    private let isSocket: Bool
    /// How much may be written at once.
    private let limit: Int

    package init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var found = stat()
        let type = fstat(descriptor, &found) == 0 ? found.st_mode & S_IFMT : 0
        isSocket = type == S_IFSOCK
        // Only pipes and devices block. /dev/ptmx would open another terminal.
        let mayBlock = type == S_IFIFO || type == S_IFCHR
        let canReopen = type == S_IFIFO || isatty(descriptor) == 1 && found.st_rdev != 5 << 8 | 2
        own =
            canReopen && fcntl(descriptor, F_GETFL) & O_ACCMODE != O_RDONLY
            ? open("/proc/self/fd/\(descriptor)", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1
        // Another user's can't be opened. A pipe that poll(2) reports as writable takes a page.
        limit = own < 0 && mayBlock ? 4_096 : .max
    }

    deinit {
        if own >= 0 { close(own) }
    }

    /// Writes what it takes now.
    ///
    /// - Returns: as write(2) of a descriptor that does not block.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        if own >= 0 { return Glibc.write(own, bytes.baseAddress, bytes.count) }
        if isSocket {
            return send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        }
        var target = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        if limit != .max, poll(&target, 1, 0) == 0 {
            errno = EAGAIN
            return -1
        }
        return Glibc.write(descriptor, bytes.baseAddress, min(bytes.count, limit))
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A descriptor of ours in a program of somebody else's, which may close all that it has, as daemons do. The number may
/// then belong to something else, which must not be read, written or closed.
///
/// Sockets and pipes have an identity each. What has none in a file system, such as eventfd(2) and timerfd_create(2),
/// has one together: there the check finds out that the number is closed, or is a file, a socket or a pipe.
package struct OwnDescriptor: Sendable {
    package let number: Int32
    private let device: dev_t
    private let inode: ino_t

    package init(_ number: Int32) {
        self.number = number
        var facts = stat()
        if fstat(number, &facts) != 0 { facts = stat() }
        (device, inode) = (facts.st_dev, facts.st_ino)
    }

    /// Whether the number still stands for it.
    package var isOurs: Bool {
        var facts = stat()
        return fstat(number, &facts) == 0 && facts.st_ino == inode && facts.st_dev == device
    }

    /// Closes it, if it is ours.
    package func close() {
        if isOurs { Glibc.close(number) }
    }
}

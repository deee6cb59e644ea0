// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A descriptor of this library in a program that may close all its descriptors, as daemons do. The number may then
/// belong to something else, which must not be read, written or closed.
///
/// Sockets and pipes have an identity each. Descriptors that belong to no file, such as those of eventfd(2) and
/// timerfd_create(2), share one: for these the check notices when the number is closed, or has become a file, a socket
/// or a pipe.
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

// SPDX-License-Identifier: Apache-2.0

import CLinux
import CommandSupport
import Glibc

/// The eventfd with which the center's threads wake the main thread.
final class Wakeup: Sendable {
    /// Readable when there is something to look at.
    let descriptor: Int32

    init() throws(StartError) {
        descriptor = linux_eventfd()
        if descriptor < 0 {
            throw StartError("cannot create an eventfd: \(Diagnostics.text(of: errno))")
        }
    }

    deinit {
        close(descriptor)
    }

    func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Makes the descriptor unreadable. Look for the reasons after this, not before.
    func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

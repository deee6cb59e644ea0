// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// The eventfd with which other threads wake the main thread.
package final class Wakeup: Sendable {
    /// Readable when there is something to look at.
    package let descriptor: Int32

    package init() throws(ResourceError) {
        descriptor = linux_eventfd()
        if descriptor < 0 { throw ResourceError("an eventfd", errno) }
    }

    deinit {
        close(descriptor)
    }

    package func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Makes the descriptor unreadable. Look for the reasons after this, not before.
    package func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

/// What the kernel did not give.
package struct ResourceError: Error {
    package let message: String

    init(_ what: String, _ number: Int32) {
        message = "cannot create \(what): \(Diagnostics.text(of: number))"
    }
}

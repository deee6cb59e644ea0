// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A descriptor that another thread makes readable to wake poll(2) or epoll_wait(2). See eventfd(2).
package final class WakeDescriptor: Sendable {
    /// Readable when there is something to check.
    package let descriptor: Int32

    package init() throws(NotifyBusError) {
        descriptor = linux_eventfd()
        if descriptor < 0 { throw .outOfDescriptors("an eventfd", errno) }
    }

    deinit { Glibc.close(descriptor) }

    package func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Makes the descriptor unreadable. Check for the reasons after this, not before.
    package func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

/// A timer that a thread sleeps on. See timerfd_create(2).
struct TimerDescriptor: ~Copyable {
    let descriptor: Int32

    init() throws(NotifyBusError) {
        descriptor = linux_timerfd()
        if descriptor < 0 { throw .outOfDescriptors("a timerfd", errno) }
    }

    deinit { Glibc.close(descriptor) }

    /// Wakes the sleeper after this many nanoseconds, at least 1. A later call replaces an earlier one.
    func fire(afterNanoseconds delay: Int64) {
        linux_timerfd_fire(descriptor, delay)
    }

    /// Takes back what the last call of `fire` has asked for.
    func stop() {
        linux_timerfd_fire(descriptor, 0)
    }

    /// Sleeps until the timer fires, or a signal interrupts.
    func sleep() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyWire

/// A descriptor that another thread makes readable to wake poll(2) or epoll_wait(2). See eventfd(2).
package final class WakeDescriptor: Sendable {
    /// Readable when there is something to check.
    package var descriptor: Int32 { own.number }
    private let own: OwnDescriptor

    package init() throws(NotifyBusError) {
        let descriptor = linux_eventfd()
        if descriptor < 0 { throw .outOfDescriptors("an eventfd", errno) }
        own = OwnDescriptor(descriptor)
    }

    deinit { own.close() }

    /// Whether the program has not closed it.
    package var isOurs: Bool { own.isOurs }

    /// - Returns: false if the program has closed the descriptor, so that it wakes no thread.
    @discardableResult
    package func signal() -> Bool {
        guard isOurs else { return false }
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
        return true
    }

    /// Makes the descriptor unreadable. Check for the reasons after this, not before.
    package func clear() {
        guard isOurs else { return }
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

/// A timer that a thread sleeps on. See timerfd_create(2).
struct TimerDescriptor: ~Copyable {
    private let own: OwnDescriptor

    init() throws(NotifyBusError) {
        let descriptor = linux_timerfd()
        if descriptor < 0 { throw .outOfDescriptors("a timerfd", errno) }
        own = OwnDescriptor(descriptor)
    }

    deinit { own.close() }

    /// Whether the program has not closed it.
    var isOurs: Bool { own.isOurs }

    /// Wakes the sleeper after this many nanoseconds, at least 1. A later call replaces an earlier one.
    func fire(afterNanoseconds delay: Int64) {
        linux_timerfd_fire(own.number, delay)
    }

    /// Takes back what the last call of `fire` has asked for.
    func stop() {
        linux_timerfd_fire(own.number, 0)
    }

    /// Sleeps until the timer fires, or a signal interrupts.
    ///
    /// - Returns: false if the program has closed the timer.
    func sleep() -> Bool {
        guard isOurs else { return false }
        var request = pollfd(fd: own.number, events: Int16(POLLIN), revents: 0)
        poll(&request, 1, -1)
        guard isOurs else { return false }
        var count: UInt64 = 0
        _ = read(own.number, &count, 8)
        return true
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A descriptor that another thread makes readable to wake a poll(2). See eventfd(2).
struct WakeDescriptor: ~Copyable {
    let descriptor: Int32

    init() throws(NotifyBusError) {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC.rawValue | EFD_NONBLOCK.rawValue))
        if descriptor < 0 { throw .outOfDescriptors("an eventfd", errno) }
    }

    deinit { Glibc.close(descriptor) }

    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

/// A timer that a thread sleeps on. See timerfd_create(2).
struct TimerDescriptor: ~Copyable {
    let descriptor: Int32

    init() throws(NotifyBusError) {
        descriptor = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC.rawValue))
        if descriptor < 0 { throw .outOfDescriptors("a timerfd", errno) }
    }

    deinit { Glibc.close(descriptor) }

    /// Lets the sleeper go on after so many nanoseconds, at least 1. A later call replaces an earlier one.
    func fire(afterNanoseconds delay: Int64) {
        var setting = itimerspec()
        setting.it_value.tv_sec = Int(delay / 1_000_000_000)
        setting.it_value.tv_nsec = Int(delay % 1_000_000_000)
        timerfd_settime(descriptor, 0, &setting, nil)
    }

    /// Sleeps until the timer fires; a signal that interrupts makes it return early.
    func sleep() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

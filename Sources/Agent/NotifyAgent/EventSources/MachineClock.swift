// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// Notices that the clock was set, or that the machine has slept: both cancel a timer that never expires. See
/// timerfd_create(2).
final class ClockWatch {
    private let loop: EventLoop
    private let timer: Int32

    /// - Parameter changed: called with false if it can't be noticed any more.
    init(on loop: EventLoop, changed: @escaping (Bool) -> Void) throws(SourceFault) {
        self.loop = loop
        timer = linux_clock_timer()
        guard timer >= 0, linux_clock_timer_arm(timer) == 0 else {
            let fault = SourceFault.system("can't watch the clock")
            if timer >= 0 { close(timer) }
            throw fault
        }
        loop.watch(timer) { [timer] in
            var count: UInt64 = 0
            let wasSet = read(timer, &count, 8) < 0 && errno == ECANCELED
            if linux_clock_timer_arm(timer) != 0 { changed(false) } else if wasSet { changed(true) }
        }
    }

    deinit {
        loop.forget(timer)
        close(timer)
    }
}

/// How long the machine has slept since its start, which shows that it has woken whatever anybody says: one clock goes on
/// meanwhile, and another does not. See clock_gettime(2).
enum MachineSleep {
    /// What counts as sleep, in nanoseconds: more than what lies between looking at two clocks.
    static let shortest: Int64 = 10_000_000

    /// In nanoseconds; nil if other programs came between looking at the two clocks.
    static func duration() -> Int64? {
        for _ in 0..<10 {
            let (before, all, after) = (time(CLOCK_MONOTONIC), time(CLOCK_BOOTTIME), time(CLOCK_MONOTONIC))
            if after - before < shortest / 2 { return all - before }
        }
        return nil
    }

    private static func time(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

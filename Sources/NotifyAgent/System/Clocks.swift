// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator

/// The time of day.
enum WallClock {
    /// Seconds since 1970.
    static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec)
    }
}

extension Moment {
    static var now: Moment { Moment(nanoseconds: MonotonicClock.now, wallClock: WallClock.now) }
}

enum MonotonicClock {
    /// Nanoseconds since boot.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

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
    static var now: Moment { Moment(nanoseconds: MonotonicTime.now.nanoseconds, wallClock: WallClock.now) }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The clocks of the kernel, in nanoseconds.
package enum Clock {
    /// Nobody sets it back or forward.
    package static var monotonic: Int64 { read(CLOCK_MONOTONIC) }

    /// The time of day, since 1970.
    package static var timeOfDay: Int64 { read(CLOCK_REALTIME) }

    private static func read(_ clock: clockid_t) -> Int64 {
        var now = timespec()
        clock_gettime(clock, &now)
        return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
    }
}

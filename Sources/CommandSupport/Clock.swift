// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// The clocks of the kernel, in nanoseconds.
package enum Clock {
    /// Never set back or forward.
    package static var monotonic: Int64 { MonotonicTime.now.nanoseconds }

    /// The time of day, since 1970.
    package static var timeOfDay: Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
    }
}

// SPDX-License-Identifier: Apache-2.0

package import Glibc

/// The clocks of the kernel.
package enum Clock {
    /// Nanoseconds that no one sets back or forward.
    package static var monotonic: Int64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
    }

    /// The time of day.
    package static var wall: timespec {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return now
    }
}

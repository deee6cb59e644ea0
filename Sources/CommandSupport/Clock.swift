// SPDX-License-Identifier: Apache-2.0

<<<<<<< HEAD
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
=======
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
>>>>>>> 41a60085771eff7cb9a6e5c33d19d7aa007c4736
}

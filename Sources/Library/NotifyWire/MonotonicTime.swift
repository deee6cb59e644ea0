// SPDX-License-Identifier: Apache-2.0

package import Glibc

/// A point in time of the monotonic clock, in nanoseconds since boot. See clock_gettime(2), `CLOCK_MONOTONIC`.
package struct MonotonicTime: Comparable, Sendable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static var now: MonotonicTime {
        var time = Glibc.timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The time `duration` from now; nil, which means never, if there is no duration or it exceeds 100 years.
    package static func after(_ duration: Duration?) -> MonotonicTime? {
        guard let duration, duration < .seconds(100 * 365 * 86_400) else { return nil }
        let (seconds, attoseconds) = max(duration, .zero).components
        return MonotonicTime(nanoseconds: now.nanoseconds + seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    /// The earlier of two times; nil means never.
    package static func earlier(_ left: MonotonicTime?, _ right: MonotonicTime?) -> MonotonicTime? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }

    package static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    package static func + (time: MonotonicTime, milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: time.nanoseconds + milliseconds * 1_000_000)
    }

    package var timespec: Glibc.timespec {
        Glibc.timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }

    /// Milliseconds from now, rounded up as poll(2) requires; 0 if it has passed.
    package var millisecondsFromNow: Int32 {
        let remaining = nanoseconds - MonotonicTime.now.nanoseconds
        return remaining <= 0 ? 0 : Int32(clamping: (remaining + 999_999) / 1_000_000)
    }
}

/// The time of day. See clock_gettime(2), `CLOCK_REALTIME`.
package enum TimeOfDay {
    /// Since 1970.
    package static var nanoseconds: Int64 {
        var time = Glibc.timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

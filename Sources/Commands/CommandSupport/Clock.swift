// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// The clocks of the kernel, in nanoseconds.
package enum Clock {
    /// Never set back or forward.
    package static var monotonic: Int64 { MonotonicTime.now.nanoseconds }

    /// The time of day, since 1970.
    package static var timeOfDay: Int64 { TimeOfDay.nanoseconds }
}

/// A time of the monotonic clock by which something must have happened.
package struct Deadline: Sendable {
    /// How long a bus that says nothing is waited for if the user gives no time: D-Bus's own default for a call.
    package static let busLimit = Duration.seconds(25)

    private let nanoseconds: Int64

    /// - Parameter duration: from now; one from an option can't overflow the clock.
    package init(after duration: Duration) {
        nanoseconds = Clock.monotonic + duration.inNanoseconds
    }

    package var hasPassed: Bool { Clock.monotonic >= nanoseconds }

    /// The remaining time; zero once it has passed.
    package var remaining: Duration { .nanoseconds(max(0, nanoseconds - Clock.monotonic)) }

    /// The remaining time for poll(2), rounded up so that it has passed by then.
    package var milliseconds: Int32 {
        Int32(clamping: (max(0, nanoseconds - Clock.monotonic) + 999_999) / 1_000_000)
    }
}

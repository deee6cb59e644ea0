// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// The time of day.
enum WallClock {
    /// Seconds since 1970.
    static var now: UInt64 { UInt64(max(0, time(nil))) }
}

extension Timestamp {
    static var now: Timestamp { Timestamp(nanoseconds: MonotonicTime.now.nanoseconds, wallClock: WallClock.now) }
}

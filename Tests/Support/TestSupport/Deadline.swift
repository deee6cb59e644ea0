// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Duration {
    /// How long tests wait for what must happen: longer than any machine takes, however busy, because tests make no
    /// assumptions about time.
    public static let patience = Duration.seconds(120)
}

/// A point in time on `CLOCK_MONOTONIC`.
struct Deadline {
    private let nanoseconds: Int64

    init(after timeout: Duration) {
        // A century is forever, and adding one does not overflow.
        let (seconds, attoseconds) = min(max(timeout, .zero), .seconds(100 * 365 * 86_400)).components
        nanoseconds = Deadline.now + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    var hasPassed: Bool { Deadline.now >= nanoseconds }

    /// For `poll`: rounded up, so that a wait never ends just before the deadline and spins.
    var remainingMilliseconds: Int32 {
        Int32(clamping: max(0, (nanoseconds - Deadline.now + 999_999) / 1_000_000))
    }

    /// For `pthread_cond_timedwait`.
    var time: timespec {
        timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }
}

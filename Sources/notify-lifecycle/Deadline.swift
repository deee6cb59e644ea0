// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// A moment of the monotonic clock.
struct Deadline {
    private let nanoseconds: Int64

    init(after duration: Duration) {
        nanoseconds = Clock.monotonic + duration.inNanoseconds
    }

    var hasPassed: Bool { Clock.monotonic >= nanoseconds }

    /// From now, for poll(2): rounded up, so that it has passed then.
    var milliseconds: Int32 {
        Int32(clamping: (max(0, nanoseconds - Clock.monotonic) + 999_999) / 1_000_000)
    }
}

// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

// Not in CommandSupport: in a library that other modules import, the compiler may look for the members of `timespec` in
// the wrong module.

extension Clock {
    /// The time of day.
    static var wall: timespec {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return now
    }
}

extension LocalTime {
    static func append(_ time: timespec, to record: inout [UInt8]) {
        append(nanosecondsSince1970: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec), to: &record)
    }
}

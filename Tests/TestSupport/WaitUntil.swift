// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Checks a condition every 2 ms; returns whether it became true within `timeout`.
///
/// A check that takes longer, as when it starts a program, is repeated after twice the time that it took, so that it leaves
/// the processor to what it waits for.
///
/// For facts that can only be polled, such as those of another process. For callbacks, wait on a
/// ``Counter`` or a ``Recorder``.
public func waitUntil(timeout: Duration = .patience, _ condition: () throws -> Bool) rethrows -> Bool {
    let deadline = Deadline(after: timeout)
    while true {
        let began = Deadline.now
        guard try !condition() else { return true }
        guard !deadline.hasPassed else { return false }
        let microseconds = (Deadline.now - began) / 1_000
        usleep(UInt32(min(max(2 * microseconds, 2_000), 100_000)))
    }
}

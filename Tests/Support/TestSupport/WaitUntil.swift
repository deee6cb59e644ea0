// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Checks a condition every 2 ms, and later every 20; returns whether it became true within `timeout`.
///
/// For facts that can only be polled, such as those of another process. For callbacks, wait on a
/// ``Counter`` or a ``Recorder``.
public func waitUntil(timeout: Duration = .patience, _ condition: () throws -> Bool) rethrows -> Bool {
    let deadline = Deadline(after: timeout)
    // A long wait may take an eighth longer: asking keeps others from running.
    var pause: UInt32 = 2_000
    while try !condition() {
        guard !deadline.hasPassed else { return false }
        usleep(pause)
        pause = min(pause + pause / 8, 20_000)
    }
    return true
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Asks every 2 ms whether a condition holds; returns whether it did within `timeout`.
///
/// For what can only be looked at: the facts of another process. For what a callback tells, wait on a ``Counter`` or a
/// ``Recorder``.
public func waitUntil(timeout: Duration = .patience, _ condition: () throws -> Bool) rethrows -> Bool {
    let deadline = Deadline(after: timeout)
    while try !condition() {
        guard !deadline.hasPassed else { return false }
        usleep(2_000)
    }
    return true
}

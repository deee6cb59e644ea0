// SPDX-License-Identifier: Apache-2.0

public import Glibc

/// Lets some time pass, by a program that has nothing to do with the bus: `self.` names need none.
///
/// For what must not happen within a time, and leaves no other trace.
///
/// - Parameter time: as `notify-wait --timeout` takes it.
public func passTime(_ time: String) throws {
    let result = try run(productPath("notify-wait"), ["-q", "-t", time, "self.never"])
    if result.status != 2 { throw TestSupportError("notify-wait ended with \(result.status): \(result.errorOutput)") }
}

/// Waits until a process has slept for some time without being woken.
///
/// - Returns: how often it has been woken so far; nil if it did not come to rest.
public func wakeUpsOnceAsleep(_ pid: pid_t, for time: String, timeout: Duration = .seconds(20)) throws -> Int? {
    var count = 0
    let sleeps = try waitUntil(timeout: timeout) {
        count = wakeUps(of: pid)
        try passTime(time)
        return wakeUps(of: pid) == count
    }
    return sleeps ? count : nil
}

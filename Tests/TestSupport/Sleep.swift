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

/// Whether a process that nobody disturbs comes to rest, and then sleeps for some time without being woken.
///
/// What it still has to do when this is called, and what a busy machine delays, is waited for. A process that wakes more
/// often than once in that time never passes.
public func sleeps(_ pid: pid_t, for time: String) throws -> Bool {
    try waitUntil {
        let count = wakeUps(of: pid)
        try passTime(time)
        return wakeUps(of: pid) == count
    }
}

// SPDX-License-Identifier: Apache-2.0

public import Glibc

/// Lets some time pass, with a program that waits for a bus in vain.
///
/// For events that must not happen within a time, and leave no other trace.
///
/// - Parameter time: as `notify-wait --timeout` takes it.
public func passTime(_ time: String) throws {
    let result = try run(productPath("notify-wait"), ["-q", "-t", time, "--retry", "--address", nowhere, "a"])
    if result.status != 2 { throw TestSupportError("notify-wait ended with \(result.status): \(result.errorOutput)") }
}

/// An address at which there is no bus.
private let nowhere = "unix:path=/nonexistent/bus"

/// Whether an undisturbed process comes to rest, and then sleeps for some time without waking.
///
/// This waits for work that is still pending or delayed by a busy machine. A process that wakes more than once in that
/// time never passes.
public func sleeps(_ pid: pid_t, for time: String) throws -> Bool {
    try waitUntil {
        let count = wakeUps(of: pid)
        try passTime(time)
        return wakeUps(of: pid) == count
    }
}

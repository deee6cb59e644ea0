// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// The commands that talk to a bus.
let commands = ["notify-post", "notify-wait"]

/// An address at which there is no bus.
let nowhere = "unix:path=/nonexistent/bus"

extension PrivateBus {
    func makeCenter() -> NotifyCenter {
        NotifyCenter(bus: .address(address))
    }

    /// Runs a command of this package on this bus to its end.
    func run(_ command: String, _ arguments: [String], input: String? = nil) throws -> CommandResult {
        try TestSupport.run(
            productPath(command),
            ["--address", address] + arguments,
            input: input,
            timeout: .patience
        )
    }

    /// Starts a bash script that finds the commands by their names, and they this bus.
    func startScript(_ text: String, _ arguments: [String] = [], input: CommandStream = .null) throws -> RunningCommand
    {
        try start("bash", ["-c", text, "bash"] + arguments, environment: environment(), input: input)
    }

    /// Runs a bash script to its end.
    func script(
        _ text: String,
        _ arguments: [String] = [],
        timeout: Duration = .patience
    ) throws -> CommandResult {
        try startScript(text, arguments).wait(timeout: timeout)
    }

    /// The variables by which a program finds the commands by their names, and they this bus.
    func environment() throws -> [String: String?] {
        let folder = try productPath("notify-wait").dropLast("notify-wait".count)
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return ["PATH": "\(folder):\(path)", "DBUS_SESSION_BUS_ADDRESS": address]
    }
}

/// The processes that `notify-wait` runs for a notification, by the name of the program: they are below a process that
/// waits for all of them.
func runs(of waiting: pid_t, named name: String) -> [pid_t] {
    children(of: waiting, named: "notify-wait").flatMap { children(of: $0, named: name) }
}

/// Does something again that a busy machine was too slow for: a command must get somewhere before its own time is over.
///
/// - Returns: the first result that was in time, or else the last.
func inTime<Result>(
    _ body: () throws -> Result,
    unless isLate: (Result) -> Bool = { _ in false }
) rethrows -> Result {
    let end = ContinuousClock.now + .patience
    while true {
        do {
            let result = try body()
            if !isLate(result) || ContinuousClock.now > end { return result }
        } catch is TestSupportError where ContinuousClock.now <= end {
            // It did not even come to wait.
        }
    }
}

/// A time of <time.h>.
///
/// Not in the files that import a command as testable: there the compiler looks for `timespec` in the wrong module.
func makeTime(seconds: Int, nanoseconds: Int) -> timespec {
    timespec(tv_sec: seconds, tv_nsec: nanoseconds)
}

/// The signals that a line such as `SigIgn: 0000000000001000` of `/proc/PID/status` names.
///
/// Without 32 and 33, which glibc keeps for itself: no program of this process's making can change what it has
/// inherited of these.
func signals(inStatusLine line: String) -> [Int] {
    guard let digits = line.split(whereSeparator: \.isWhitespace).last, let mask = UInt64(digits, radix: 16) else {
        return [-1]
    }
    return (1...64).filter { mask & 1 << UInt64($0 - 1) != 0 && $0 != 32 && $0 != 33 }
}

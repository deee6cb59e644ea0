// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Stops whole processes and lets them continue, on behalf of a user who may do so.
enum Freezer {
    /// How a process was stopped.
    enum Stop {
        case signal
        /// The directory of its cgroup.
        case cgroup(String)
    }

    /// Stops a process: through its cgroup if it has one to itself, otherwise by SIGSTOP.
    ///
    /// The permission is checked before, and again once the process is stopped: in between it may have executed a
    /// set-user-ID program.
    ///
    /// - Returns: how, or the error number.
    static func freeze(_ process: ProcessHandle, for user: UInt32) -> Result<Stop, FreezeError> {
        guard process.mayBeStopped(by: user) else { return .failure(FreezeError(code: EPERM)) }
        if let folder = process.cgroup, isAlone(process, in: folder), write("1", to: folder + "/cgroup.freeze") == 0 {
            if isAlone(process, in: folder), process.mayBeStopped(by: user) { return .success(.cgroup(folder)) }
            _ = write("0", to: folder + "/cgroup.freeze")
        }
        let code = process.signal(SIGSTOP)
        guard code == 0 else { return .failure(FreezeError(code: code)) }
        guard process.mayBeStopped(by: user) else {
            _ = process.signal(SIGCONT)
            return .failure(FreezeError(code: EPERM))
        }
        return .success(.signal)
    }

    /// Lets a process continue that was stopped here.
    static func thaw(_ process: ProcessHandle, _ stop: Stop, for user: UInt32) -> FreezeError? {
        let code: Int32
        switch stop {
        // The agent has done this, whoever is in there by now.
        case .cgroup(let folder): code = write("0", to: folder + "/cgroup.freeze")
        case .signal where process.state == nil: code = ESRCH
        case .signal: code = process.mayBeStopped(by: user) ? process.signal(SIGCONT) : EPERM
        }
        return code == 0 || code == ENOENT || code == ESRCH ? nil : FreezeError(code: code)
    }

    /// Whether the cgroup has no other process, and none below it.
    private static func isAlone(_ process: ProcessHandle, in folder: String) -> Bool {
        guard let members = SystemFile.text(of: folder + "/cgroup.procs") else { return false }
        guard members.split(separator: "\n").map({ pid_t($0) }) == [process.pid] else { return false }
        // A process further down would be frozen with it.
        guard let stat = SystemFile.text(of: folder + "/cgroup.stat") else { return false }
        // The number may belong to another process by now, but not while this one lives.
        return stat.split(separator: "\n").contains("nr_descendants 0") && process.state != nil
    }

    static func write(_ text: String, to path: String) -> Int32 {
        let descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        return text.withCString { Glibc.write(descriptor, $0, strlen($0)) } < 0 ? errno : 0
    }
}

struct FreezeError: Error {
    let code: Int32

    var text: String {
        code == EPERM
            ? "it runs with the rights of another user" : strerror(code).map { String(cString: $0) } ?? "error \(code)"
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyNames

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
    /// - Returns: how, or what prevented it.
    static func freeze(
        _ process: ProcessHandle,
        for user: UInt32,
        _ thawGuard: ThawGuard
    ) -> Result<Stop, FreezeError> {
        guard process.mayBeStopped(by: user) else { return .failure(.noPermission) }
        if let folder = process.cgroup, isAlone(process, in: folder) {
            guard thawGuard.add(.cgroup(folder), .person) else { return .failure(.noMark) }
            if write("1", to: folder + "/cgroup.freeze") == 0 {
                if isAlone(process, in: folder), process.mayBeStopped(by: user) { return .success(.cgroup(folder)) }
                _ = write("0", to: folder + "/cgroup.freeze")
            }
            thawGuard.remove(.cgroup(folder))
        }
        guard thawGuard.add(process.asStopped, .person) else { return .failure(.noMark) }
        let code = process.signal(SIGSTOP)
        if code == 0, process.mayBeStopped(by: user) { return .success(.signal) }
        if code == 0 { _ = process.signal(SIGCONT) }
        thawGuard.remove(process.asStopped)
        return .failure(code == 0 ? .noPermission : .system(code))
    }

    /// How a process was stopped; nil if it runs.
    static func stop(of process: ProcessHandle) -> Stop? {
        if let folder = process.cgroup, SystemFile.text(of: folder + "/cgroup.freeze") == "1\n",
            isAlone(process, in: folder)
        {
            return .cgroup(folder)
        }
        return process.state.map { "Tt".utf8.contains($0) } == true ? .signal : nil
    }

    /// Lets a process continue that was stopped here.
    static func thaw(_ process: ProcessHandle, _ stop: Stop, for user: UInt32) -> FreezeError? {
        let code: Int32
        switch stop {
        // The agent has done this, whatever process is in there by now.
        case .cgroup(let folder): code = write("0", to: folder + "/cgroup.freeze")
        case .signal where process.state == nil: code = ESRCH
        case .signal: code = process.mayBeStopped(by: user) ? process.signal(SIGCONT) : EPERM
        }
        if code == 0 || code == ENOENT || code == ESRCH { return nil }
        return code == EPERM ? .noPermission : .system(code)
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

enum FreezeError: Error {
    /// It runs with the rights of another user.
    case noPermission
    /// It could not be noted for the processes that are to let it continue if the agent is killed.
    case noMark
    /// An error number.
    case system(Int32)

    var text: String {
        switch self {
        case .noPermission: "it runs with the rights of another user"
        case .noMark: "it can't be ensured that it continues if the agent is killed"
        case .system(let code): describe(errno: code)
        }
    }
}

extension Freezer.Stop {
    /// What is stopped this way.
    func thing(_ process: ProcessHandle) -> StoppedThing {
        switch self {
        case .cgroup(let folder): .cgroup(folder)
        case .signal: process.asStopped
        }
    }
}

extension ProcessHandle {
    var asStopped: StoppedThing { .process(pid, start: key.start) }
}

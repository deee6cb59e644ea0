// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Stops whole processes and lets them go on.
enum Freezer {
    /// Stops a process: by its cgroup if it has one to itself, else by SIGSTOP.
    ///
    /// - Returns: how, or the error number.
    static func freeze(_ process: ManagedProcess) -> Result<ManagedProcess.Stop, FreezeError> {
        if let folder = ProcessFacts.cgroup(of: process.pid), isAlone(process.pid, in: folder),
            write("1", to: folder + "/cgroup.freeze") == 0
        {
            return .success(.cgroup(folder))
        }
        let code = process.signal(SIGSTOP)
        return code == 0 ? .success(.signal) : .failure(FreezeError(code: code))
    }

    static func thaw(_ process: ManagedProcess) -> FreezeError? {
        switch process.stop {
        case nil: return nil
        case .cgroup(let folder):
            let code = write("0", to: folder + "/cgroup.freeze")
            return code == 0 || code == ENOENT ? nil : FreezeError(code: code)
        case .signal:
            let code = process.signal(SIGCONT)
            return code == 0 || code == ESRCH ? nil : FreezeError(code: code)
        }
    }

    /// Whether the cgroup has no other process, and none below it.
    private static func isAlone(_ pid: pid_t, in folder: String) -> Bool {
        guard let members = ProcessFacts.text(ofFile: folder + "/cgroup.procs") else { return false }
        let pids = members.split(separator: "\n").compactMap { pid_t($0) }
        guard pids == [pid] else { return false }
        // A process further down would be frozen with it.
        guard let stat = ProcessFacts.text(ofFile: folder + "/cgroup.stat") else { return false }
        return stat.split(separator: "\n").contains("nr_descendants 0")
    }

    private static func write(_ text: String, to path: String) -> Int32 {
        let descriptor = open(path, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        return text.withCString { Glibc.write(descriptor, $0, strlen($0)) } < 0 ? errno : 0
    }
}

struct FreezeError: Error {
    let code: Int32
    var text: String { strerror(code).map { String(cString: $0) } ?? "error \(code)" }
}

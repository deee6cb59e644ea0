// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent
import NotifyCore

/// The service manager's store of descriptors, which outlives a restart of the agent. See sd_pid_notify_with_fds(3) and
/// sd_listen_fds(3).
enum FileStore {
    private static let name = "heritage"
    /// The first descriptor that is passed on.
    private static let first: Int32 = 3
    private static let maximumCount: Int32 = 64

    /// Whether there may be one.
    static var isThere: Bool { getenv("NOTIFY_SOCKET") != nil }

    /// Takes what the agent before this one has left. It stays in the store until `clear`.
    static func takeBequest() -> Bequest? {
        guard let pid = number("LISTEN_PID"), pid == getpid(), let count = number("LISTEN_FDS"), count > 0,
            count <= maximumCount
        else { return nil }
        unsetenv("LISTEN_PID")
        for descriptor in first..<first + count { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return Bequest(Array(first..<first + count))
    }

    private static func number(_ name: String) -> Int32? { getenv(name).flatMap { Int32(String(cString: $0)) } }

    /// Leaves it to the agent that is started next, in place of what this one was started with: there is room for one.
    static func keep(_ bequest: Bequest, _ logger: Logger) {
        clear()
        let error = NotifySocket.tell("FDSTORE=1\nFDNAME=\(name)", [bequest.heritage, bequest.socket])
        if let error { logger.warning("can't leave anything to the next agent: \(error)") }
    }

    /// The stored descriptors have been taken, and are not needed any more.
    static func clear() {
        if getenv("LISTEN_FDS") != nil { _ = NotifySocket.tell("FDSTOREREMOVE=1\nFDNAME=\(name)") }
    }
}

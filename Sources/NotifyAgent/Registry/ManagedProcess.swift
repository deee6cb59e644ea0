// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyNames

/// A process that has, or had, observing connections.
///
/// `@unchecked Sendable`, like all that belongs to the agent: only the thread that reads touches it.
final class ManagedProcess: @unchecked Sendable {
    /// How the agent has stopped the process.
    enum Stop {
        case signal
        /// The folder of its cgroup.
        case cgroup(String)
    }

    let pid: pid_t
    let user: UInt32
    let application: String
    /// Readable when the process has ended; -1 where that cannot be watched.
    let pidfd: Int32
    /// The id of the login session that it runs in; nil if it is the user's service manager that runs it, or nobody.
    let session: String?
    /// What a person has set for the whole process, and has not released.
    var wish: LifecycleState?
    /// Whether a person has released it after a wish for its application, which then does not count for it.
    var isReleased = false
    /// What it has reported of itself.
    var report: LifecycleState?
    var stop: Stop?
    /// Whether it stands still, whoever stopped it.
    var isStopped = false
    /// By number; also those that are parked.
    var connections: [UInt64: ManagedConnection] = [:]

    init(pid: pid_t, user: UInt32, application: String, session: String? = nil, pidfd: Int32) {
        self.pid = pid
        self.user = user
        self.application = application
        self.session = session
        self.pidfd = pidfd
    }

    /// Whether the agent must remember it although none of its connections observes.
    var isWorthRemembering: Bool { wish != nil || isReleased || report != nil }

    func forgetWishes() {
        (wish, isReleased, report) = (nil, false, nil)
    }

    deinit { if pidfd >= 0 { close(pidfd) } }

    func signal(_ number: Int32) -> Int32 {
        pidfd >= 0 && linux_pidfd_signal(pidfd, number) == 0 ? 0 : (pidfd < 0 ? ESRCH : errno)
    }
}

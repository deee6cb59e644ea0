// SPDX-License-Identifier: Apache-2.0

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

    /// Told apart from others by the watcher's thread.
    let number: UInt64
    let handle: ProcessHandle
    let application: String
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

    init(_ client: Identity.Client, number: UInt64) {
        self.number = number
        handle = client.process
        application = client.application
        session = client.session
    }

    var pid: pid_t { handle.pid }
    var user: UInt32 { handle.user }

    /// Whether its end, and that it stands still, is noticed.
    var isWatched: Bool { handle.pidfd >= 0 }

    /// Whether the agent must remember it although none of its connections observes.
    var isWorthRemembering: Bool { wish != nil || isReleased || report != nil }

    func forgetWishes() {
        (wish, isReleased, report) = (nil, false, nil)
    }
}

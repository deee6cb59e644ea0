// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// One process, which is never mistaken for another that had, or will have, the same number.
final class ProcessHandle: Sendable {
    /// What makes it this process: numbers are given again, and a process can act for several users.
    struct Key: Hashable, Sendable {
        let pid: pid_t
        /// Whose its connection to the bus is.
        let user: UInt32
        /// When it began, in clock ticks after the machine.
        let start: UInt64
    }

    /// Why a process can't be told.
    enum Doubt: Error, Equatable {
        /// It has ended.
        case gone
        /// It runs with the rights of this user.
        case belongs(to: UInt32)

        func text(_ pid: pid_t, user: UInt32) -> String {
            switch self {
            case .gone: "Process \(pid), which made this connection, has ended."
            case .belongs(let other):
                "Process \(pid) belongs to user \(other), but its connection to user \(user)."
            }
        }
    }

    /// This process itself.
    static var own: pid_t { getpid() }

    let key: Key
    /// See pidfd_open(2): readable when the process has ended. -1 where there was no descriptor to spare.
    let pidfd: Int32

    var pid: pid_t { key.pid }
    var user: UInt32 { key.user }

    private init(_ key: Key, pidfd: Int32) {
        self.key = key
        self.pidfd = pidfd
    }

    deinit { if pidfd >= 0 { close(pidfd) } }

    /// Takes hold of the process that made a connection.
    ///
    /// - Parameters:
    ///   - pid: its number, as the bus says.
    ///   - given: the bus's own descriptor of the process, or -1. It is the handle's from now on.
    ///   - user: whose the connection is, as the bus says.
    static func open(_ pid: pid_t, pidfd given: Int32 = -1, user: UInt32) -> Result<ProcessHandle, Doubt> {
        let pidfd = given >= 0 ? given : linux_pidfd_open(pid)
        let found: Result<Key, Doubt> = {
            // A bus may count processes otherwise than this agent, in another namespace.
            if given >= 0, number(of: given) != pid { return .failure(.gone) }
            guard let folder = ProcessFolder(of: pid), let users = folder.users, let start = folder.startTime else {
                return .failure(.gone)
            }
            // The one that the folder is of is the one that the descriptor is of if that has not ended since.
            if given >= 0 || pidfd >= 0, !isAlive(pidfd) { return .failure(.gone) }
            guard users.effective == user else { return .failure(.belongs(to: users.effective)) }
            return .success(Key(pid: pid, user: user, start: start))
        }()
        // Without a descriptor to spare the process is served, but neither watched nor stopped.
        let isKept = Descriptors.canSpare(pidfd)
        if pidfd >= 0, !isKept || (try? found.get()) == nil { close(pidfd) }
        return found.map { ProcessHandle($0, pidfd: isKept ? pidfd : -1) }
    }

    /// Reads of the process, as long as it is this one; nil if it has ended.
    func read<Value>(_ body: (borrowing ProcessFolder) -> Value?) -> Value? {
        guard let folder = ProcessFolder(of: pid), folder.startTime == key.start else { return nil }
        return body(folder)
    }

    /// The letter of its state; nil if it has ended.
    var state: UInt8? { read { $0.state } }

    /// The folder of its version 2 cgroup; nil if that is the root, or can't be found.
    var cgroup: String? { read { $0.cgroupFolder } }

    /// Whether a user may stop it and let it go on, as things are now: what it has become by executing a set-user-ID
    /// program is no longer its user's.
    func mayBeStopped(by other: UInt32) -> Bool {
        if other == 0 { return true }
        return other == user && read { $0.users?.areAll(other) } == true
    }

    /// Sends a signal to this process and no other.
    ///
    /// - Returns: 0 or the error number.
    func signal(_ number: Int32) -> Int32 {
        guard pidfd >= 0 else { return ESRCH }
        return linux_pidfd_signal(pidfd, number) == 0 ? 0 : errno
    }

    /// The number, as this process counts, of the process that a descriptor is of; -1 if that has ended. See
    /// pidfd_open(2).
    private static func number(of pidfd: Int32) -> pid_t? {
        for line in SystemFile.text(of: "/proc/self/fdinfo/\(pidfd)")?.split(separator: "\n") ?? []
        where line.utf8.starts(with: "Pid:".utf8) {
            return line.split { $0 == "\t" || $0 == " " }.last.flatMap { pid_t($0) }
        }
        return nil
    }

    private static func isAlive(_ pidfd: Int32) -> Bool {
        var facts = pollfd(fd: pidfd, events: Int16(POLLIN), revents: 0)
        return poll(&facts, 1, 0) == 0
    }
}

/// How many descriptors the agent may have, and how many of them others may make it keep.
enum Descriptors {
    /// These are left for the bus, for messages that bring some, and for what is read in between.
    private static let reserve: Int32 = 40

    private static let limit: Int32 = {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
        return Int32(clamping: limit.rlim_cur)
    }()

    /// Whether a descriptor may be kept for long. The kernel gives the lowest free number, so a high one says that few
    /// are left.
    static func canSpare(_ descriptor: Int32) -> Bool { descriptor >= 0 && descriptor < limit - reserve }
}

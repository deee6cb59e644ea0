// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// One process, never confused with another that had or will have the same number.
final class ProcessHandle: Sendable {
    /// Identifies the process: numbers are reused, and a process can act for several users.
    struct Key: Hashable, Sendable {
        let pid: pid_t
        /// The user of its connection to the bus.
        let user: UInt32
        /// When it started, in clock ticks since boot.
        let start: UInt64
    }

    /// Why a process can't be identified.
    enum Doubt: Error, Equatable {
        /// It has exited.
        case gone
        /// The bus numbers it differently: it or the bus is in another PID namespace than this agent.
        case elsewhere
        /// It runs with the rights of this user.
        case belongs(to: UInt32)

        func text(_ pid: pid_t, user: UInt32) -> String {
            switch self {
            case .gone: "Process \(pid), which made this connection, has ended."
            case .elsewhere: "Process \(pid) made this connection in another process namespace than this agent's."
            case .belongs(let other):
                "Process \(pid) belongs to user \(other), but its connection to user \(user)."
            }
        }
    }

    /// What is looked at when a process is opened.
    struct Look {
        let cgroups: [String]
        let hasFlatpakMark: Bool
    }

    /// This process itself.
    static var own: pid_t { getpid() }

    let key: Key
    /// See pidfd_open(2): readable once the process has exited. -1 if no descriptor was available.
    let pidfd: Int32

    var pid: pid_t { key.pid }
    var user: UInt32 { key.user }

    private init(_ key: Key, pidfd: Int32) {
        self.key = key
        self.pidfd = pidfd
    }

    deinit { if pidfd >= 0 { close(pidfd) } }

    /// Opens the process that made a connection.
    ///
    /// - Parameters:
    ///   - pid: its number, as reported by the bus.
    ///   - given: the bus's own descriptor of the process, or -1. It belongs to the handle from now on.
    ///   - user: the user of the connection, as reported by the bus.
    ///   - looksInside: whether to look into its root directory.
    static func open(
        _ pid: pid_t,
        pidfd given: Int32 = -1,
        user: UInt32,
        looksInside: Bool = false
    ) -> Result<(ProcessHandle, Look), Doubt> {
        let pidfd = given >= 0 ? given : linux_pidfd_open(pid)
        let found: Result<(Key, Look), Doubt> = {
            // A bus in another namespace may number processes differently from this agent.
            if given >= 0, case let own = number(of: given) ?? -1, own != pid {
                return .failure(own < 0 ? .gone : .elsewhere)
            }
            guard let folder = ProcessFolder(of: pid), let users = folder.users, let start = folder.startTime else {
                return .failure(.gone)
            }
            let hasMark = looksInside && users.effective == user && folder.hasFlatpakMark == true
            let look = Look(cgroups: folder.cgroups, hasFlatpakMark: hasMark)
            // The directory and the descriptor belong to the same process if that has not exited since.
            if given >= 0 || pidfd >= 0, !isAlive(pidfd) { return .failure(.gone) }
            guard users.effective == user else { return .failure(.belongs(to: users.effective)) }
            return .success((Key(pid: pid, user: user, start: start), look))
        }()
        // If no descriptor is available, the process is served, but neither watched nor stopped.
        let isKept = Descriptors.canSpare(pidfd)
        if pidfd >= 0, !isKept || (try? found.get()) == nil { close(pidfd) }
        return found.map { (ProcessHandle($0.0, pidfd: isKept ? pidfd : -1), $0.1) }
    }

    /// Reads about the process while it is this one; nil if it has exited.
    func read<Value>(_ body: (borrowing ProcessFolder) -> Value?) -> Value? {
        guard let folder = ProcessFolder(of: pid), folder.startTime == key.start else { return nil }
        return body(folder)
    }

    /// Whether it has not exited.
    var isAlive: Bool { pidfd >= 0 ? ProcessHandle.isAlive(pidfd) : state != nil }

    /// The letter of its state; nil if it has exited.
    var state: UInt8? { read { $0.state } }

    /// The directory of its version 2 cgroup; nil if that is the root, or can't be determined.
    var cgroup: String? { read { $0.cgroupFolder } }

    /// Whether a user may currently stop and continue it: once it has executed a set-user-ID program, it no longer
    /// belongs to its user.
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

    /// The process number, in this agent's namespace, that a descriptor refers to; 0 if it has none there, -1 if the
    /// process has exited. See pidfd_open(2).
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
    /// These are reserved for the bus, for messages that carry descriptors, and for temporary use.
    private static let reserve: Int32 = 40

    private static let limit: Int32 = {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
        return Int32(clamping: limit.rlim_cur)
    }()

    /// Whether a descriptor may be kept for long. The kernel assigns the lowest free number, so a high one means that
    /// few are left.
    static func canSpare(_ descriptor: Int32) -> Bool { descriptor >= 0 && descriptor < limit - reserve }
}

/// The directory of one process in `/proc`. See proc(5).
///
/// It is opened once: everything read through it concerns the same process, even if that exits and its number is
/// reused. Only files of the kernel in that directory are read, by single-component names and never through a symbolic
/// link.
package struct ProcessFolder: ~Copyable {
    /// The user IDs of a process, as named in credentials(7).
    package struct Users: Equatable, Sendable {
        package var real: UInt32
        package var effective: UInt32
        package var saved: UInt32

        /// Whether the process has only the rights of one user.
        package func areAll(_ user: UInt32) -> Bool { real == user && effective == user && saved == user }
    }

    private let descriptor: Int32

    /// - Returns: nil if there is no such process.
    package init?(of pid: Int32) {
        guard pid > 0 else { return nil }
        let descriptor = open("/proc/\(pid)", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// The content of `status`; nil if the process is gone.
    package var users: Users? { text(of: "status").flatMap { ProcessFolder.users(inStatus: $0) } }

    /// When the process started, in clock ticks since boot; nil if it is gone.
    package var startTime: UInt64? { bytes(of: "stat").flatMap { ProcessFolder.startTime(inStat: $0) } }

    /// The letter of its state, such as `T` for stopped; nil if the process is gone.
    package var state: UInt8? { bytes(of: "stat").flatMap { ProcessFolder.state(inStat: $0) } }

    /// The signals that wait for the process, signal 1 as the lowest bit; nil if the process is gone.
    var pendingSignals: UInt64? { text(of: "status").map(ProcessFolder.pendingSignals) }

    /// The fields of `stat` that follow the state, as far as they are numbers that fit; nil if the process is gone.
    var numbers: [Int32?]? {
        bytes(of: "stat").flatMap(ProcessFolder.fields)?.dropFirst().map { Int32(String(decoding: $0, as: UTF8.self)) }
    }

    /// What the process calls itself in its own namespace; nil if that is the machine's.
    package var innerNumber: Int32? { text(of: "status").flatMap(ProcessFolder.innerNumber) }

    /// The paths of its cgroups: the unified one and systemd's own, if they exist.
    package var cgroups: [String] {
        let found = AppIdentity.cgroups(in: text(of: "cgroup") ?? "")
        return [found.unified, found.systemd].compactMap(\.self)
    }

    /// The path of its version 2 cgroup; nil if it can't be determined.
    package var unifiedCgroup: String? { AppIdentity.cgroups(in: text(of: "cgroup") ?? "").unified }

    /// The directory of its version 2 cgroup; nil if that is the root, or can't be determined.
    package var cgroupFolder: String? {
        unifiedCgroup.flatMap { CgroupMount.folder(of: $0) }
    }

    /// The same for a process whose number is known.
    package static func cgroup(of pid: Int32) -> String? {
        guard let folder = ProcessFolder(of: pid) else { return nil }
        return folder.cgroupFolder
    }

    /// Whether the root directory of the process contains the file by which Flatpak marks a sandbox; nil if that can't
    /// be determined.
    ///
    /// The file is not opened, and its content would not be trusted: a process in a user namespace can choose its root.
    package var hasFlatpakMark: Bool? {
        var facts = stat()
        if fstatat(descriptor, "root/.flatpak-info", &facts, AT_SYMLINK_NOFOLLOW) == 0 { return true }
        return errno == ENOENT ? false : nil
    }

    // MARK: - Reading

    /// "PID (NAME) STATE …", where the name, of at most 64 bytes, may contain parentheses and spaces too.
    package static func state(inStat bytes: [UInt8]) -> UInt8? {
        fields(inStat: bytes)?.first?.first
    }

    /// The 22nd field, counting the state as the third.
    package static func startTime(inStat bytes: [UInt8]) -> UInt64? {
        guard let fields = fields(inStat: bytes), fields.count > 19 else { return nil }
        return UInt64(String(decoding: fields[19], as: UTF8.self))
    }

    private static func fields(inStat bytes: [UInt8]) -> [ArraySlice<UInt8>]? {
        guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        return bytes[(end + 1)...].split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
    }

    /// The line "Uid: REAL EFFECTIVE SAVED FILESYSTEM".
    package static func users(inStatus text: String) -> Users? {
        for line in text.split(separator: "\n") where line.utf8.starts(with: "Uid:".utf8) {
            let numbers = line.dropFirst(4).split { $0 == "\t" || $0 == " " }.map { UInt32($0) }
            guard numbers.count == 4, let real = numbers[0], let effective = numbers[1], let saved = numbers[2] else {
                return nil
            }
            return Users(real: real, effective: effective, saved: saved)
        }
        return nil
    }

    /// The line "NSpid: PID…", from the outermost namespace to the innermost.
    package static func innerNumber(inStatus text: String) -> Int32? {
        let line = text.split(separator: "\n").first { $0.utf8.starts(with: "NSpid:".utf8) }
        let numbers = line?.dropFirst(6).split { $0 == "\t" || $0 == " " } ?? []
        return numbers.count > 1 ? numbers.last.flatMap { Int32($0) } : nil
    }

    /// The lines "SigPnd: MASK", for the first thread, and "ShdPnd: MASK", for all.
    static func pendingSignals(inStatus text: String) -> UInt64 {
        text.split(separator: "\n").reduce(0) { signals, line in
            guard ["SigPnd:", "ShdPnd:"].contains(line.prefix(7)) else { return signals }
            return signals | (UInt64(line.dropFirst(7).filter { !$0.isWhitespace }, radix: 16) ?? 0)
        }
    }

    private func text(of file: StaticString) -> String? {
        bytes(of: file).map { String(decoding: $0, as: UTF8.self) }
    }

    private func bytes(of file: StaticString) -> [UInt8]? {
        let name = UnsafeRawPointer(file.utf8Start).assumingMemoryBound(to: CChar.self)
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let bytes = SystemFile.bytes(from: file)
        return bytes.isEmpty ? nil : bytes
    }
}

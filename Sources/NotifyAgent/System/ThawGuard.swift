// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// Something that the agent has stopped, and that must not stay stopped.
package enum StoppedThing: Hashable, Sendable {
    /// The directory of a cgroup.
    case cgroup(String)
    /// - Parameter start: when the process started, by which it is told from another with its number.
    case process(Int32, start: UInt64)

    /// As a line for the program that lets it continue.
    var text: String {
        switch self {
        case .cgroup(let folder): "cgroup \(folder)"
        case .process(let pid, let start): "process \(pid) \(start)"
        }
    }

    init?(_ text: Substring) {
        let parts = text.split(separator: " ", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        if parts[0] == "cgroup" {
            self = .cgroup(String(parts[1]))
            return
        }
        let numbers = parts[1].split(separator: " ")
        guard parts[0] == "process", numbers.count == 2, let pid = Int32(numbers[0]), let start = UInt64(numbers[1])
        else { return nil }
        self = .process(pid, start: start)
    }

    /// Lets it continue.
    func thaw() {
        switch self {
        case .cgroup(let folder): _ = Freezer.write("0", to: folder + "/cgroup.freeze")
        case .process(let pid, let start):
            let descriptor = linux_pidfd_open(pid)
            guard descriptor >= 0 else { return }
            defer { close(descriptor) }
            if let process = ProcessFolder(of: pid), process.startTime == start {
                linux_pidfd_signal(descriptor, SIGCONT)
            }
        }
    }
}

/// Has what the agent has stopped continue if the agent is killed: a process of its own is told of each thing, and notices
/// the end of the agent by their socket. It exists while something is stopped.
final class ThawGuard {
    private let program: String?
    private let loop: EventLoop
    private var socket: Int32 = -1
    private var things: Set<StoppedThing> = []
    /// Called when that process has been killed: nothing may stay stopped then.
    var hasGone: () -> Void = {}

    /// - Parameter program: `notify-agent`; nil if there is to be no guard.
    init(_ program: String?, on loop: EventLoop) { (self.program, self.loop) = (program, loop) }

    deinit { if socket >= 0 { close(socket) } }

    /// Must be called before a thing is stopped.
    ///
    /// - Returns: whether it will be seen to.
    func add(_ thing: StoppedThing) -> Bool {
        guard program != nil else { return true }
        guard socket >= 0 || start(), send("+" + thing.text) else { return false }
        things.insert(thing)
        return true
    }

    /// Must be called after a thing continues.
    func remove(_ thing: StoppedThing) {
        guard things.remove(thing) != nil else { return }
        _ = send("-" + thing.text)
        if things.isEmpty { end() }
    }

    /// Each line is a packet.
    private func send(_ line: String) -> Bool {
        let bytes = Array(line.utf8)
        return linux_send(socket, bytes, bytes.count, nil, 0) == bytes.count
    }

    private func end() {
        guard socket >= 0 else { return }
        loop.forget(socket)
        close(socket)
        (socket, things) = (-1, [])
    }

    private func start() -> Bool {
        guard let program else { return false }
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return false }
        defer { close(ends[1]) }
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        guard posix_spawn_file_actions_init(&actions) == 0 else { return false }
        defer { posix_spawn_file_actions_destroy(&actions) }
        guard posix_spawnattr_init(&attributes) == 0 else { return false }
        defer { posix_spawnattr_destroy(&attributes) }
        // Whatever ends the agent's process group must not end it.
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
        var child: pid_t = 0
        let words: [UnsafeMutablePointer<CChar>?] = [strdup("notify-agent"), strdup("--thaw"), nil]
        defer { for word in words { free(word) } }
        // It needs nothing of the environment.
        guard posix_spawn(&child, program, &actions, &attributes, words, [nil]) == 0 else {
            close(ends[0])
            return false
        }
        socket = ends[0]
        watchEnd(of: child)
        // It sends nothing, so this is its end.
        loop.watch(socket) { [weak self] in
            self?.end()
            self?.hasGone()
        }
        return true
    }

    /// Somebody must wait for a child that has ended.
    private func watchEnd(of child: pid_t) {
        let descriptor = linux_pidfd_open(child)
        guard descriptor >= 0 else { return }
        loop.watch(descriptor) { [loop] in
            waitpid(child, nil, WNOHANG)
            loop.forget(descriptor)
            close(descriptor)
        }
    }
}

/// The process that has everything continue: `notify-agent --thaw`.
package enum Thawing {
    /// More than a line can have.
    private static let maximum = 8_192

    /// Reads what is stopped, and what no longer is, until the agent has ended.
    package static func run() {
        // It is started as /proc/self/exe, which would be its name.
        linux_name_thread("notify-thaw")
        // The service manager may end the agent together with this process, which then has something to do.
        for number in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] { signal(number, SIG_IGN) }
        var things: Set<StoppedThing> = []
        var packet = [UInt8](repeating: 0, count: maximum)
        while true {
            let count = read(STDIN_FILENO, &packet, packet.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            let line = String(decoding: packet[..<count], as: UTF8.self)
            guard let thing = StoppedThing(line.dropFirst()) else { continue }
            if line.first == "+" { things.insert(thing) } else { things.remove(thing) }
        }
        for thing in things { thing.thaw() }
    }
}

// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// Has what the agent has stopped continue if the agent is killed: each thing is marked first, in a file, and a process of its
/// own notices the end of the agent by their socket. The service manager starts such a process, too, whatever has ended the
/// agent's unit. They exist while something is stopped.
final class ThawGuard {
    /// How often what is stopped is looked at, in milliseconds.
    private static let interval: Int64 = 500
    /// For how long at a time, in nanoseconds.
    private static let slice: Int64 = 1_000_000
    /// `POSIX_SPAWN_SETSID`, which the header has only for `_GNU_SOURCE`.
    private static let newSession: Int16 = 0x80

    private let program: String?
    private let servesMachine: Bool
    private let loop: EventLoop
    private var socket: Int32 = -1
    /// The process; meaningless without a socket.
    private var child: pid_t = 0
    private var marks: MarkFile
    private var timer: Int?
    /// Those that have not been looked at yet in this round.
    private var round: [StoppedThing] = []
    /// Called when no other process would let things continue any more: nothing may stay stopped then.
    var hasGone: () -> Void = {}
    /// Called when a thing that is stopped has been sent a signal that asks it to end.
    var isToEnd: (StoppedThing) -> Void = { _ in }

    /// - Parameter program: `notify-agent`; nil if there is to be no guard.
    init(_ program: String?, servesMachine: Bool, on loop: EventLoop) {
        (self.program, self.servesMachine, self.loop) = (program, servesMachine, loop)
        marks = MarkFile(MarkFolder(servesMachine: servesMachine))
    }

    deinit { if socket >= 0 { close(socket) } }

    /// Must be called before a thing is stopped.
    ///
    /// - Returns: whether it will be seen to.
    func add(_ thing: StoppedThing, _ reason: StopReason) -> Bool {
        guard program != nil else { return true }
        guard marks.add(thing, reason) else { return false }
        guard socket >= 0 || start() else {
            marks.remove(thing)
            return false
        }
        if timer == nil { timer = loop.after(ThawGuard.interval) { [weak self] in self?.look() } }
        return true
    }

    /// Must be called after a thing continues.
    func remove(_ thing: StoppedThing) {
        guard program != nil else { return }
        marks.remove(thing)
        if marks.things.isEmpty { end(dismissing: true) }
    }

    /// The process, while something is stopped.
    var process: Int32? { socket >= 0 ? child : nil }

    /// Leaves what is still stopped to the process, which lets continue what no other agent takes over.
    func leave() {
        guard program != nil, !marks.things.isEmpty else { return }
        let things = marks.things.keys
        if socket < 0 || !marks.give(to: child) {
            for thing in things {
                thing.thaw()
                marks.remove(thing)
            }
        }
        end()
    }

    /// - Parameter dismissing: whether there is nothing for the process to do.
    private func end(dismissing: Bool = false) {
        loop.cancel(timer)
        (timer, round) = (nil, [])
        guard socket >= 0 else { return }
        if dismissing { _ = send(socket, [UInt8(0)], 1, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)) }
        loop.forget(socket)
        close(socket)
        socket = -1
    }

    // MARK: - Signals

    /// Nothing announces a signal for a process that is stopped.
    private func look() {
        timer = loop.after(ThawGuard.interval) { [weak self] in self?.look() }
        if round.isEmpty { round = Array(marks.things.keys) }
        let end = MonotonicTime.now.nanoseconds + ThawGuard.slice
        repeat {
            guard let thing = round.popLast() else { return }
            if marks.things[thing] != nil, thing.isToEnd { isToEnd(thing) }
        } while MonotonicTime.now.nanoseconds < end
    }

    // MARK: - The process

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
        // Whatever ends the agent's process group must not end it, nor is it stopped with the program that has started the
        // agent: see `ProcessTree`.
        posix_spawnattr_setflags(&attributes, ThawGuard.newSession)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
        let options = ["notify-agent", "--thaw"] + (servesMachine ? ["--system"] : [])
        let words: [UnsafeMutablePointer<CChar>?] = options.map { strdup($0) } + [nil]
        // It needs nothing else of the environment.
        let runtime = SystemFile.environment("XDG_RUNTIME_DIR").map { $0 + "=" + $1 }
        let variables: [UnsafeMutablePointer<CChar>?] = runtime.map { strdup($0) } + [nil]
        defer { for text in words + variables { free(text) } }
        guard posix_spawn(&child, program, &actions, &attributes, words, variables) == 0 else {
            close(ends[0])
            return false
        }
        socket = ends[0]
        watchEnd(of: child)
        // It sends nothing, so this is its end.
        loop.watch(socket) { [weak self] in self?.guardHasEnded() }
        return true
    }

    /// It was killed. Another one finds everything in the file.
    private func guardHasEnded() {
        loop.forget(socket)
        close(socket)
        socket = -1
        if !start() { hasGone() }
    }

    /// A child that has ended must be waited for.
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
    /// How long the next agent may take to take over what this one has left, in milliseconds: a little less than anything
    /// may stay stopped.
    private static let adoptionLimit: Int64 = 3_000

    /// Waits for the end of input, which is that of the agent, and lets everything continue that agents which are gone
    /// had stopped; also the things that the agent has left to this process, if no other agent takes them over in time.
    package static func run(servesMachine: Bool) {
        // It is started as /proc/self/exe, which would be its name.
        linux_name_thread("notify-thaw")
        // The service manager may end the agent together with this process, which then has something to do.
        for number in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] { signal(number, SIG_IGN) }
        // It has made the socket. It may no longer be the parent of this process, even before it has ended: only the thread
        // that has started this process was that.
        let (agent, folder) = (PeerCredentials(of: STDIN_FILENO)?.pid ?? 0, MarkFolder(servesMachine: servesMachine))
        let process = agent > 0 ? linux_pidfd_open(agent) : -1
        var bytes: [UInt8] = [0]
        var isDismissed = false
        while true {
            let count = read(STDIN_FILENO, &bytes, bytes.count)
            if count > 0 { isDismissed = true }
            if count > 0 || count < 0 && errno == EINTR { continue }
            break
        }
        close(STDIN_FILENO)
        // The agent's socket closes before it has ended, and until then what it has marked counts as its own.
        if process >= 0, !isDismissed, folder.hasMarks(of: agent) {
            var facts = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
            while poll(&facts, 1, -1) < 0, errno == EINTR { continue }
        }
        folder.thawAbandoned()
        folder.thawUnlessAdopted(within: adoptionLimit)
    }
}

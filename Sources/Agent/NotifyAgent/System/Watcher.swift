// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCoordinator
import NotifyCore

/// Told what the watcher notices.
protocol WatcherDelegate: AnyObject {
    func processHasEnded(_ process: ProcessID)
    /// A process was stopped, or continues.
    func process(_ process: ProcessID, isStopped: Bool)
    /// The process is in a different cgroup.
    func processHasMoved(_ process: ProcessID)
    func connectionHasHungUp(_ connection: ConnectionID)
    /// Nothing more of a stream is needed. The connection has yet to be ended.
    func streamIsDrained(_ connection: ConnectionID, _ stream: ParkedStream)
}

/// Watches processes and sockets, and does nothing while nothing happens.
///
/// The kernel reports the exit of a process (pidfd), the freezing of a cgroup (`cgroup.events`) and the end of a
/// connection (its socket hangs up). It reports SIGSTOP only to the parent. But a stopped process does no harm until
/// the bus queues something for it, and that the kernel does report: its socket becomes readable. From then on the
/// process is checked once a second, until it is found running, with nothing left unread for longer than that.
final class Watcher {
    /// How often processes are checked, in milliseconds.
    private static let interval: Int64 = 1_000
    /// How long processes are checked before others get their turn, in nanoseconds.
    private static let slice: Int64 = 1_000_000

    /// What a descriptor is watched for: the upper byte of its number.
    private enum Kind: UInt64 { case process, cgroup, socket, drain }

    private struct WatchedSocket {
        let descriptor: Int32
        let process: UInt64
    }

    private let loop: EventLoop
    /// There may be thousands of descriptors, more than poll(2) should go through each time.
    private let epoll: Int32
    weak var delegate: (any WatcherDelegate)?
    /// The kernel reports numbers: those of processes count them, those of sockets and streams are their connections'.
    private var numbers: [ProcessID: UInt64] = [:]
    private var lastNumber: UInt64 = 0
    private var processes: [UInt64: ProcessHandle] = [:]
    private var looks: [UInt64: ProcessLook] = [:]
    private var sockets: [UInt64: WatchedSocket] = [:]
    /// The numbers of the sockets from which a process reads.
    private var readers: [UInt64: Set<UInt64>] = [:]
    /// Those that the next tick checks.
    private var suspects: Set<UInt64> = []
    /// Those that lack a socket, so that each tick checks them.
    private var unannounced: Set<UInt64> = []
    private var drains: [UInt64: ParkedStream] = [:]
    private var tick: Int?

    init(on loop: EventLoop) throws(NotifyBusError) {
        self.loop = loop
        epoll = linux_epoll()
        guard epoll >= 0 else { throw .outOfDescriptors("an epoll descriptor", errno) }
        loop.watch(epoll) { [weak self] in self?.takeEvents() }
    }

    deinit { close(epoll) }

    /// Nothing more is noticed.
    func end() {
        loop.forget(epoll)
        loop.cancel(tick)
    }

    // MARK: - What is watched

    func watch(_ process: ProcessHandle) {
        lastNumber += 1
        numbers[ProcessID(process)] = lastNumber
        processes[lastNumber] = process
        _ = add(process.pidfd, .process, lastNumber)
    }

    func forget(_ process: ProcessID) {
        guard let number = numbers.removeValue(forKey: process) else { return }
        if let process = processes.removeValue(forKey: number) { remove(process.pidfd) }
        endLooking(at: number)
    }

    /// - Returns: whether the socket can be watched.
    func watch(_ socket: Int32, of connection: ConnectionID, _ process: ProcessID) -> Bool {
        let number = connection.number
        // No events: only hang-ups and errors are reported.
        guard let process = numbers[process], add(socket, .socket, number, events: 0) else { return false }
        sockets[number] = WatchedSocket(descriptor: socket, process: process)
        readers[process, default: []].insert(number)
        return true
    }

    /// Must be called before the socket is closed.
    func forgetSocket(of connection: ConnectionID) { _ = dropSocket(connection.number) }

    private func dropSocket(_ number: UInt64) -> Bool {
        guard let socket = sockets.removeValue(forKey: number) else { return false }
        remove(socket.descriptor)
        readers[socket.process]?.remove(number)
        if readers[socket.process]?.isEmpty == true { readers[socket.process] = nil }
        return true
    }

    func drain(_ stream: ParkedStream, of connection: ConnectionID) {
        drains[connection.number] = stream
        _ = add(stream.socket, .drain, connection.number)
        startTicking()
    }

    func dropDrain(of connection: ConnectionID) {
        if let stream = drains.removeValue(forKey: connection.number) { remove(stream.socket) }
    }

    /// Starts or stops checking whether a process is stopped. Must be called again when its sockets change.
    ///
    /// - Parameter isAnnounced: whether all its sockets are watched.
    func look(at process: ProcessID, _ mustLook: Bool, isAnnounced: Bool) {
        guard let number = numbers[process] else { return }
        guard mustLook else { return endLooking(at: number) }
        if isAnnounced { unannounced.remove(number) } else { unannounced.insert(number) }
        if looks[number] == nil {
            guard let process = processes[number] else { return }
            begin(ProcessLook(process), number)
            suspect(number)
        } else if !isAnnounced {
            suspect(number)
        } else if !suspects.contains(number) {
            heedTraffic(of: number, events: Watcher.readable)
        }
    }

    private func endLooking(at number: UInt64) {
        guard let look = looks.removeValue(forKey: number) else { return }
        forget(look)
        suspects.remove(number)
        unannounced.remove(number)
        heedTraffic(of: number, events: 0)
    }

    private func begin(_ look: ProcessLook, _ number: UInt64) {
        if look.events >= 0 { _ = add(look.events, .cgroup, number, events: Watcher.urgent) }
        looks[number] = look
    }

    private func forget(_ look: ProcessLook) {
        if look.events >= 0 { remove(look.events) }
    }

    /// Whether to be told when the bus has something for a process.
    private func heedTraffic(of process: UInt64, events: UInt32) {
        for number in readers[process] ?? [] {
            if let socket = sockets[number] { change(socket, number, events: events) }
        }
    }

    // MARK: - Once a second

    private func suspect(_ number: UInt64) {
        suspects.insert(number)
        startTicking()
    }

    private func startTicking() {
        guard tick == nil else { return }
        tick = loop.after(Watcher.interval) { [weak self] in
            guard let self else { return }
            let all = Array(suspects)
            check(all[...], of: all)
        }
    }

    /// Checks some of the suspects, and puts the others off until all other work has had a turn.
    private func check(_ rest: ArraySlice<UInt64>, of all: [UInt64]) {
        let end = MonotonicTime.now.nanoseconds + Watcher.slice
        for (index, number) in zip(rest.indices, rest) {
            if MonotonicTime.now.nanoseconds > end {
                return loop.soon { [weak self] in self?.check(rest[index...], of: all) }
            }
            guard let look = looks[number] else { continue }
            if let moved = look.moved() {
                forget(look)
                begin(moved, number)
                if let process = processes[number] { delegate?.processHasMoved(ProcessID(process)) }
            }
            lookNow(at: number)
        }
        for (connection, stream) in drains where stream.isStuck() { finish(stream, connection) }
        for number in all where looks[number]?.mustGoOn == false && !unannounced.contains(number) {
            suspects.remove(number)
            heedTraffic(of: number, events: Watcher.readable)
        }
        tick = nil
        if !suspects.isEmpty || !drains.isEmpty { startTicking() }
    }

    /// Looks at a process now, if it is one that must not be stopped unnoticed.
    func lookNow(at process: ProcessID) { if let number = numbers[process] { lookNow(at: number) } }

    private func lookNow(at number: UInt64) {
        guard let isStopped = looks[number]?.change(), let process = processes[number] else { return }
        delegate?.process(ProcessID(process), isStopped: isStopped)
    }

    // MARK: - What the kernel reports

    private func takeEvents() {
        withUnsafeTemporaryAllocation(of: linux_event.self, capacity: 64) { found in
            guard let start = found.baseAddress else { return }
            for event in found.prefix(max(0, Int(linux_epoll_wait(epoll, start, 64, 0)))) {
                guard let kind = Kind(rawValue: event.number >> 56) else { continue }
                take(kind, event.number & 0xff_ffff_ffff_ffff, event.events)
            }
        }
    }

    private func take(_ kind: Kind, _ number: UInt64, _ events: UInt32) {
        switch kind {
        case .process:
            guard let process = processes.removeValue(forKey: number) else { return }
            remove(process.pidfd)
            delegate?.processHasEnded(ProcessID(process))
        case .cgroup: lookNow(at: number)
        case .socket where events & Watcher.endings == 0: trafficBegins(number)
        case .socket: if dropSocket(number) { delegate?.connectionHasHungUp(ConnectionID(number)) }
        case .drain: if let stream = drains[number], stream.readSome() { finish(stream, number) }
        }
    }

    /// The bus has something for a process. One notice is enough until the next check.
    private func trafficBegins(_ number: UInt64) {
        guard let socket = sockets[number] else { return }
        change(socket, number, events: 0)
        if looks[socket.process] != nil { suspect(socket.process) }
    }

    private func finish(_ stream: ParkedStream, _ number: UInt64) {
        guard drains.removeValue(forKey: number) != nil else { return }
        remove(stream.socket)
        delegate?.streamIsDrained(ConnectionID(number), stream)
    }

    // MARK: - epoll(7)

    private static let readable: UInt32 = 1
    private static let urgent: UInt32 = 2
    /// Errors and hang-ups.
    private static let endings: UInt32 = 8 | 16

    private func add(_ descriptor: Int32, _ kind: Kind, _ number: UInt64, events: UInt32 = readable) -> Bool {
        linux_epoll_add(epoll, descriptor, events, kind.rawValue << 56 | number) == 0
    }

    private func change(_ socket: WatchedSocket, _ number: UInt64, events: UInt32) {
        linux_epoll_change(epoll, socket.descriptor, events, Kind.socket.rawValue << 56 | number)
    }

    private func remove(_ descriptor: Int32) { linux_epoll_remove(epoll, descriptor) }
}

// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// Watches processes and sockets on its own thread, which sleeps while nothing happens.
///
/// The kernel reports the exit of a process (pidfd), the freezing of a cgroup (`cgroup.events`) and the end of a
/// connection (its socket hangs up). It reports SIGSTOP only to the parent. But a stopped process does no harm until
/// the bus queues something for it, and that the kernel does report: its socket becomes readable. From then on the
/// process is checked once a second, until it is found running, with nothing left unread for longer than that.
final class Watcher: Sendable {
    enum Event: Sendable {
        /// A process, by its number in the registry.
        case ended(UInt64)
        case stopped(UInt64)
        case continued(UInt64)
        /// A connection, by its number.
        case hungUp(UInt64)
        case drained(UInt64, ParkedStream.Outcome)
        case alarm
        /// The agent may check facts again.
        case pause
        /// Nobody has observed for a while.
        case rest
        /// The process is in a different cgroup.
        case moved(UInt64)
    }

    /// How often processes are checked, in nanoseconds.
    static let interval: Int64 = 1_000_000_000

    /// What a descriptor is watched for: the upper byte of its number.
    enum Kind: UInt64 { case wake, look, alarm, pause, rest, process, cgroup, socket, drain, source }

    struct State {
        var processes: [UInt64: ProcessHandle] = [:]
        var looks: [UInt64: ProcessLook] = [:]
        var sockets: [UInt64: WatchedSocket] = [:]
        /// The numbers of the sockets from which a process reads.
        var readers: [UInt64: Set<UInt64>] = [:]
        /// Those that the next tick checks.
        var suspects: Set<UInt64> = []
        /// Those that lack a socket, so that each tick checks them.
        var unannounced: Set<UInt64> = []
        var drains: [UInt64: ParkedStream] = [:]
        var sources: [Int32: @Sendable () -> Void] = [:]
        var isTicking = false
        var isStopping = false
        var report: (@Sendable (Event) -> Void)?
    }

    struct WatchedSocket {
        let descriptor: Int32
        let process: UInt64
    }

    let epoll: Int32
    private let wakeup: WakeDescriptor
    let tick: Int32
    private let alarm: Int32
    private let pause: Int32
    private let rest: Int32
    let state = Monitor(State())

    init() throws(NotifyBusError) {
        var made: [Int32] = []
        func make(_ descriptor: Int32, _ what: String) throws(NotifyBusError) -> Int32 {
            guard descriptor >= 0 else {
                let code = errno
                for other in made { close(other) }
                throw .outOfDescriptors(what, code)
            }
            made.append(descriptor)
            return descriptor
        }
        wakeup = try WakeDescriptor()
        epoll = try make(linux_epoll(), "an epoll descriptor")
        tick = try make(linux_timerfd(), "a timerfd")
        alarm = try make(linux_timerfd(), "a timerfd")
        pause = try make(linux_timerfd(), "a timerfd")
        rest = try make(linux_timerfd(), "a timerfd")
        _ = add(wakeup.descriptor, .wake, 0)
        _ = add(tick, .look, 0)
        _ = add(alarm, .alarm, 0)
        _ = add(pause, .pause, 0)
        _ = add(rest, .rest, 0)
    }

    deinit {
        for descriptor in [epoll, tick, alarm, pause, rest] where descriptor >= 0 { close(descriptor) }
    }

    /// - Parameter report: called on the watcher's thread.
    func start(_ report: @escaping @Sendable (Event) -> Void) throws(NotifyBusError) -> EngineThread {
        state.withLock { $0.report = report }
        return try EngineThread(name: "watcher") { self.run() }
    }

    func stop() {
        state.withLock { state in
            state.isStopping = true
            state.report = nil
        }
        wake()
    }

    private func wake() {
        wakeup.signal()
    }

    // MARK: - Watches

    func watch(_ process: ProcessHandle, number: UInt64) {
        state.withLock { state in
            state.processes[number] = process
            _ = add(process.pidfd, .process, number)
        }
    }

    func forget(process number: UInt64) {
        state.withLock { state in
            if let process = state.processes.removeValue(forKey: number) { remove(process.pidfd) }
            endLooking(at: number, &state)
        }
    }

    /// - Returns: whether the socket can be watched.
    func watch(socket: Int32, number: UInt64, of process: UInt64) -> Bool {
        state.withLock { state in
            // No events: only hang-ups and errors are reported.
            guard add(socket, .socket, number, events: 0) else { return false }
            state.sockets[number] = WatchedSocket(descriptor: socket, process: process)
            state.readers[process, default: []].insert(number)
            return true
        }
    }

    /// Must be called before the socket is closed.
    func forgetSocket(_ number: UInt64) {
        state.withLock { state in
            _ = dropSocket(number, &state)
        }
    }

    private func dropSocket(_ number: UInt64, _ state: inout State) -> Bool {
        guard let socket = state.sockets.removeValue(forKey: number) else { return false }
        remove(socket.descriptor)
        state.readers[socket.process]?.remove(number)
        if state.readers[socket.process]?.isEmpty == true { state.readers[socket.process] = nil }
        return true
    }

    func drain(_ stream: ParkedStream, number: UInt64) {
        state.withLock { state in
            state.drains[number] = stream
            _ = add(stream.socket, .drain, number)
            startTicking(&state)
        }
    }

    func dropDrain(_ number: UInt64) {
        state.withLock { state in
            if let stream = state.drains.removeValue(forKey: number) { remove(stream.socket) }
        }
    }

    /// Reports `alarm` at a time of the monotonic clock; a later call replaces an earlier one.
    func alarm(at time: Int64) {
        linux_timerfd_fire(alarm, max(1, time - MonotonicTime.now.nanoseconds))
    }

    /// Reports `pause` at a time of the monotonic clock.
    func pause(until time: Int64) {
        linux_timerfd_fire(pause, max(1, time - MonotonicTime.now.nanoseconds))
    }

    /// Reports `rest` after a time in nanoseconds.
    func rest(after time: Int64) {
        linux_timerfd_fire(rest, time)
    }

    /// Calls a source of facts on this thread whenever its descriptor is readable; it must not block.
    func watch(source descriptor: Int32, _ handler: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard add(descriptor, .source, UInt64(descriptor)) else { return }
            state.sources[descriptor] = handler
        }
    }

    func forget(source descriptor: Int32) {
        state.withLock { state in
            if state.sources.removeValue(forKey: descriptor) != nil { remove(descriptor) }
        }
    }

    static let readable: UInt32 = 1
    static let urgent: UInt32 = 2
    /// Errors and hang-ups.
    private static let endings: UInt32 = 8 | 16

    func add(_ descriptor: Int32, _ kind: Kind, _ number: UInt64, events: UInt32 = readable) -> Bool {
        linux_epoll_add(epoll, descriptor, events, kind.rawValue << 56 | number) == 0
    }

    func change(_ socket: WatchedSocket, _ number: UInt64, events: UInt32) {
        linux_epoll_change(epoll, socket.descriptor, events, Kind.socket.rawValue << 56 | number)
    }

    func remove(_ descriptor: Int32) {
        linux_epoll_remove(epoll, descriptor)
    }

    // MARK: - The thread

    private func run() {
        var found = [linux_event](repeating: linux_event(), count: 64)
        while true {
            let count = linux_epoll_wait(epoll, &found, 64, -1)
            let report = state.withLock { $0.isStopping ? nil : $0.report }
            guard let report else { return }
            for index in 0..<max(0, Int(count)) {
                guard let kind = Kind(rawValue: found[index].number >> 56) else { continue }
                let number = found[index].number & 0xff_ffff_ffff_ffff
                if kind == .socket, found[index].events & Watcher.endings == 0 {
                    trafficBegins(number)
                } else {
                    deal(with: kind, number, report)
                }
            }
        }
    }

    private func deal(with kind: Kind, _ number: UInt64, _ report: (Event) -> Void) {
        switch kind {
        case .wake: wakeup.clear()
        case .alarm:
            clear(alarm)
            report(.alarm)
        case .pause:
            clear(pause)
            report(.pause)
        case .rest:
            clear(rest)
            report(.rest)
        case .source:
            state.withLock { $0.sources[Int32(truncatingIfNeeded: number)] }?()
        case .look:
            clear(tick)
            lookAround(report)
        case .process:
            let isKnown = state.withLock { state in
                guard let process = state.processes.removeValue(forKey: number) else { return false }
                remove(process.pidfd)
                return true
            }
            if isKnown { report(.ended(number)) }
        case .cgroup:
            look(at: number, report)
        case .socket:
            if state.withLock({ dropSocket(number, &$0) }) { report(.hungUp(number)) }
        case .drain:
            guard let stream = state.withLock({ $0.drains[number] }) else { return }
            if stream.readSome() { finish(stream, number, report) }
        }
    }

    private func clear(_ descriptor: Int32) {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }

    func finish(_ stream: ParkedStream, _ number: UInt64, _ report: (Event) -> Void) {
        let isKnown = state.withLock { state in
            guard state.drains.removeValue(forKey: number) != nil else { return false }
            remove(stream.socket)
            return true
        }
        guard isKnown else { return }
        report(.drained(number, stream.finish()))
    }
}

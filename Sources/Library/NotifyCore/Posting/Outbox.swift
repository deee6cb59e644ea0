// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The connection for posting, and the queue of posts to be written to it.
///
/// libdbus creates the bytes of a post once for each name. The queue is bounded, because equal names are coalesced.
///
/// The lock is held while a post is written, which keeps posts intact and in order; the socket never blocks. It is
/// never held while a connection is opened. That is left to the leader, unless a caller that may wait does it on its own
/// thread: a program that only posts, and waits for the bus anyway, needs no other threads then.
final class Outbox: Sendable {
    enum Link {
        case closed
        /// A thread is connecting and, if it is the first to do so, waiting for the bus; it does not hold the lock.
        case connecting
        /// Connected again; the leader is waiting for the bus to accept the connection.
        case opening
        case open
        /// The center was closed.
        case shut
    }

    /// The peer that confirms that a barrier has been reached.
    enum Question {
        /// The bus.
        case bus
        /// The agent that starts programs for names, which asks the bus who posted; the bus if there is no such agent.
        case launcher
    }

    struct State {
        var link = Link.closed
        /// Set while the link is `open`.
        var connection: BusConnection?
        /// Counts the connections.
        var connectionNumber = 0
        /// The socket of the connection, while the link is `open`.
        var descriptor: Int32 = -1
        /// The socket of the thread that opens the first connection, so that closing the center can end its wait.
        var openingDescriptor: Int32 = -1
        /// Set while the link is `opening`.
        var handshake: Handshake?
        /// Whether the bus has accepted a connection before.
        var wasOpen = false
        /// How many attempts to open the first connection have failed, and why the last one did; nil if only its caller's
        /// time was up.
        var failedAttempts = 0
        var openingError: NotifyBusError?
        /// Why there is no connection, if one was tried or lost.
        var absence: NotifyBusError?
        var retry = BackOff()

        var queue = PostQueue<NotifyName>()
        /// Bytes that must be written before anything else: those of the posts that are being written.
        var rest = BusOutput()
        var pace = PostingPace()

        var templates = SignalTemplates()
        var serial: UInt32 = 1
        /// Those that wait for the first connection, which the leader opens for them.
        var openings: [Barrier] = []
        /// Those that wait until so many posts have been written.
        var flushes: [(target: Int, barrier: Barrier)] = []
        /// Barriers requested from the bus.
        var barriers = ObjectTable<Barrier>()
        /// Barriers that come after queued posts: to be requested once this many posts have been taken out of the
        /// queue.
        var laterBarriers: [(position: Int, barrier: Barrier, question: Question)] = []
        /// Barriers requested from the launcher, or from the bus in its place.
        var launcherBarriers = ObjectTable<Barrier>()

        /// Whether something is queued although no thread could be started that writes it.
        var lacksLeader = false

        /// Whether the leader will open a connection as soon as it looks.
        var isDueAtOnce: Bool { link == .closed && !isDrained && retry.time == nil }

        /// Whether a post may be written immediately.
        var isDrained: Bool { rest.isEmpty && !queue.hasNext }

        mutating func nextSerial() -> UInt32 {
            // Zero is not a valid serial.
            serial = serial == .max ? 1 : serial + 1
            return serial
        }
    }

    /// How much of the queue is prepared for one write(2), in bytes.
    static let batchSize = 32_768

    let bus: NotifyCenter.Bus
    let counters: Counters
    let ownName: OwnName
    let state = Monitor(State())
    /// Whether the connection was made or lost since the leader last looked.
    let hasNews = Atomic(false)

    init(bus: NotifyCenter.Bus, counters: Counters, ownName: OwnName) {
        self.ownName = ownName
        self.bus = bus
        self.counters = counters
    }

    var waitingCount: Int { state.withLock { $0.queue.count } }

    func noteNews() { hasNews.store(true, ordering: .relaxed) }

    /// Whether there is a connection; nil if none was tried.
    var present: NotifyCenter.ConnectionChange? {
        state.withLock { state in
            switch state.link {
            case .open: .connected
            case .shut: nil
            case .closed, .connecting, .opening: state.absence.map { .disconnected($0) }
            }
        }
    }

    /// Whether posts wait for a connection that is yet to be made.
    var awaitsConnection: Bool { state.withLock { $0.link != .open && !$0.isDrained } }

    /// Writes a post, or leaves it to the leader if the socket is full or the bus is far behind.
    ///
    /// - Returns: whether the leader is needed; nil if there is no connection, and nothing was done.
    func postAtOnce(_ name: NotifyName) throws(NotifyBusError) -> Bool? {
        try state.withLock { state throws(NotifyBusError) in
            switch state.link {
            case .open: return try write(name, &state)
            case .shut: throw .closed
            case .closed, .connecting, .opening: return nil
            }
        }
    }

    /// Queues a post, unless there is a connection by now. The leader, which is needed then, opens one.
    func postLater(_ name: NotifyName) throws(NotifyBusError) {
        try state.withLock { state throws(NotifyBusError) in
            if state.link == .shut { throw .closed }
            if state.link == .open, try write(name, &state) != nil { return }
            _ = try queue(name, &state)
        }
    }

    /// The same, but first waits for a connection, and opens one on the caller's thread if necessary.
    ///
    /// - Returns: whether the leader is needed.
    func postOnceConnected(_ name: NotifyName) throws(NotifyBusError) -> Bool {
        var hasConnected = false
        while true {
            let needsLeader: Bool? = try state.withLock { state throws(NotifyBusError) in
                switch state.link {
                case .open: return try write(name, &state)
                // The leader is waiting for the bus to accept the connection again.
                case .connecting where state.wasOpen, .opening where state.wasOpen: return try queue(name, &state)
                case .connecting, .opening, .closed, .shut: return nil
                }
            }
            if let needsLeader { return needsLeader || hasConnected }
            if try open(until: nil) { hasConnected = true }
        }
    }

    /// - Returns: whether the leader is needed; nil if the connection is lost.
    private func write(_ name: NotifyName, _ state: inout State) throws(NotifyBusError) -> Bool? {
        guard state.isDrained else { return try queue(name, &state) }
        if state.pace.isFull {
            // Without threads, no other one has checked for replies.
            read(Int16(POLLIN), &state)
            drain(&state)
            guard state.link == .open else { return nil }
            if state.pace.isFull || !state.isDrained {
                _ = try queue(name, &state)
                return true
            }
        }
        // A program may close all descriptors that it has. If the number belongs to another file now, it must not be
        // written to.
        guard state.connection?.isOurs == true else {
            lose(&state)
            return nil
        }
        let serial = state.nextSerial()
        switch state.templates.write(name, serial: serial, to: state.descriptor) {
        case .whole:
            counters.posted.increment()
            state.pace.notePost()
            guard state.pace.wantsQuestion else { return false }
            drain(&state)
            return !state.isDrained
        case .part(let rest):
            rest.withUnsafeBytes { state.rest.append($0) }
            state.queue.begin(name)
            state.pace.notePost()
            counters.posted.increment()
            return true
        case .full:
            return try queue(name, &state)
        case .failed:
            // The bus has gone since the last post. It may already be back.
            lose(&state)
            return nil
        }
    }

    /// - Returns: whether the leader must be notified, because nothing was queued before.
    private func queue(_ name: NotifyName, _ state: inout State) throws(NotifyBusError) -> Bool {
        // What else is to be written may have been left by a thread that only waited for an answer.
        let wasDrained = !state.queue.hasNext
        switch state.queue.enqueue(name) {
        case .queued: break
        case .coalesced: counters.coalescedPosts.increment()
        case .full:
            throw .queueFull(name, state.queue.count)
        }
        counters.posted.increment()
        defer { state.lacksLeader = false }
        return wasDrained || state.lacksLeader
    }

    /// No thread could be started: the next post tries again.
    func noteLackOfLeader() { state.withLock { $0.lacksLeader = true } }

    /// Whether everything posted so far has been written.
    var isWritten: Bool { state.withLock { $0.queue.written >= $0.queue.enqueued } }

    /// Completes a barrier when everything posted before has been written; fails it if the bus is away.
    func flush(_ barrier: Barrier) {
        let outcome: Result<Void, NotifyBusError>? = state.withLock { state in
            if state.queue.written >= state.queue.enqueued { return .success(()) }
            switch state.link {
            case .shut: return .failure(.closed)
            // The last attempt has failed, and the next one takes a while.
            case .closed where !state.isDueAtOnce: return .failure(state.absence ?? .disconnected)
            case .closed, .connecting, .opening, .open:
                state.flushes.append((state.queue.enqueued, barrier))
                return nil
            }
        }
        if let outcome { barrier.complete(outcome) }
    }

    /// Requests confirmation from the bus that it has routed everything posted before. Opens the connection if
    /// necessary.
    func raise(
        _ barrier: Barrier,
        by question: Question = .bus,
        until deadline: MonotonicTime?
    ) throws(NotifyBusError) {
        _ = try open(until: deadline)
        try state.withLock { state throws(NotifyBusError) in
            switch state.link {
            case .shut: throw .closed
            case .closed: throw .disconnected
            case .connecting, .opening, .open: break
            }
            state.laterBarriers.append((state.queue.enqueued, barrier, question))
            drain(&state)
        }
        state.wakeAll()
    }

    /// Serves the connection on the caller's thread until the bus has replied, for a center without threads.
    func serve(until barrier: Barrier, or deadline: MonotonicTime?) throws(NotifyBusError) {
        // Threads may start meanwhile and read the reply first, and then nothing would wake us.
        let longestSleep: Int32 = 20
        while !barrier.isComplete, deadline.map({ $0 > .now }) ?? true {
            let request = pollRequest
            var events = request.pollfd
            let wakeUp = MonotonicTime.earlier(deadline, request.deadline)
            let timeout = min(longestSleep, wakeUp?.millisecondsFromNow ?? longestSleep)
            service(poll(&events, 1, timeout) > 0 ? events.revents : 0, on: request.connection)
        }
        state.withLock { drain(&$0) }
        try barrier.wait(until: .now)
    }

    /// Stops posting. Queued posts are lost, and counted.
    func close() {
        ExitFlush.forget(self)
        let barriers = state.withLock { state in
            counters.noteLost(state.queue.count)
            let barriers = state.takeBarriers() + state.takeOpenings()
            if state.openingDescriptor >= 0 { shutdown(state.openingDescriptor, Int32(SHUT_RDWR)) }
            state = State(link: .shut)
            return barriers
        }
        for barrier in barriers { barrier.complete(.failure(.closed)) }
        state.wakeAll()
    }
}

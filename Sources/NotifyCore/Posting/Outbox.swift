// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The connection that is posted on, and what waits to be written to it.
///
/// The bytes of a post are made by libdbus once for each name, and written by us: libdbus' own queue has no bound and
/// cannot merge. After the bus has let us in, libdbus itself never writes on this connection.
///
/// The lock is held while a post is written, which keeps posts whole and in order; the socket never blocks. It is also
/// held while the connection is opened by the first post: whoever else posts needs that connection too.
final class Outbox: Sendable {
    enum Link {
        case closed
        /// Opened again by the reading thread, for the sake of what waits.
        case opening(BusConnection, until: MonotonicTime)
        case open(BusConnection)
        /// The center was closed.
        case shut
    }

    struct State {
        var link = Link.closed
        var retry = Retry()
        /// What waits, beyond `inFlight`.
        var backlog = MergingQueue<NotifyName>()
        /// Bytes that must go out before anything else: the rest of what the socket took in part.
        var rest = WriteBuffer()
        /// The names whose bytes are in `rest`, to be said again if the connection is lost.
        var inFlight: [NotifyName] = []
        var templates = SignalTemplates()
        var serial: UInt32 = 1
        var barriers: [UInt32: Barrier] = [:]

        var waitingCount: Int { backlog.count + inFlight.count }
        var isDrained: Bool { rest.isEmpty && backlog.isEmpty }

        mutating func nextSerial() -> UInt32 {
            // Zero is not a serial.
            serial = serial == .max ? 1 : serial + 1
            return serial
        }
    }

    /// How long the bus may take to let us in, in milliseconds.
    static let openingLimit: Int64 = 10_000
    /// How much of the backlog is made ready for one write(2), in bytes.
    static let batchSize = 32_768

    let bus: NotifyCenter.Bus
    let counters: Counters
    let state = Monitor(State())

    init(bus: NotifyCenter.Bus, counters: Counters) {
        self.bus = bus
        self.counters = counters
    }

    var waitingCount: Int { state.withLock { $0.waitingCount } }

    /// Writes a post, or leaves it for the reading thread if the socket is full.
    ///
    /// - Returns: whether the reading thread is needed.
    func post(_ name: NotifyName) throws(NotifyBusError) -> Bool {
        try state.withLock { state throws(NotifyBusError) in
            try openIfNeeded(&state)
            guard state.isDrained, case .open(let connection) = state.link else { return try queue(name, &state) }
            let serial = state.nextSerial()
            switch state.templates.write(name, serial: serial, to: connection.descriptor) {
            case .whole:
                counters.posted.increment()
                return false
            case .part(let rest):
                state.rest.append(rest)
                state.inFlight.append(name)
                counters.posted.increment()
                return true
            case .full:
                return try queue(name, &state)
            case .failed:
                // The bus has gone since the last post. It may be back already.
                lose(&state)
                try openIfNeeded(&state)
                return try queue(name, &state)
            }
        }
    }

    /// - Returns: whether the reading thread has to be told, because nothing waited before.
    private func queue(_ name: NotifyName, _ state: inout State) throws(NotifyBusError) -> Bool {
        let wasDrained = state.isDrained
        switch state.backlog.enqueue(name) {
        case .queued: break
        case .merged: counters.mergedPosts.increment()
        case .full:
            throw NotifyBusError(
                .queueFull,
                "The post of '\(name)' was not taken: \(state.backlog.count) names wait already and the bus does not "
                    + "read them; wait with flush() before you post more."
            )
        }
        counters.posted.increment()
        return wasDrained
    }

    /// Waits until everything posted before is written; does not wait for a bus that is away.
    func flush(until deadline: MonotonicTime?) throws(NotifyBusError) {
        let outcome: Result<Void, NotifyBusError>? = state.wait(until: deadline) { state in
            if state.isDrained { return .success(()) }
            switch state.link {
            case .shut: return .failure(.closed)
            case .closed: return .failure(.disconnected)
            case .opening, .open: return nil
            }
        }
        guard let outcome else { throw .timedOut("take all posts") }
        try outcome.get()
    }

    /// Asks the bus for a sign that it has routed everything written before.
    func raise(_ barrier: Barrier) throws(NotifyBusError) {
        try state.withLock { state throws(NotifyBusError) in
            try openIfNeeded(&state)
            guard state.isDrained, case .open = state.link else { throw .disconnected }
            let serial = state.nextSerial()
            state.barriers[serial] = barrier
            state.rest.append(BusConnection.callBytes("GetId", serial: serial))
            drain(&state)
        }
        state.wakeAll()
    }

    /// Serves the connection on the caller's thread until the bus has answered, for a center without threads.
    func serve(until barrier: Barrier, or deadline: MonotonicTime?) throws(NotifyBusError) {
        // Threads may start meanwhile, and read the answer before we do: nothing would come to wake us.
        let longestSleep: Int32 = 20
        while !barrier.isComplete, deadline.map({ $0 > .now }) ?? true {
            var request = pollRequest.pollfd
            let timeout = min(longestSleep, deadline?.millisecondsFromNow ?? longestSleep)
            if poll(&request, 1, timeout) > 0 { service(request.revents) }
        }
        try barrier.wait(until: .now)
    }

    /// Posts no more. What waits is lost, and counted.
    func close() {
        ExitFlush.forget(self)
        state.withLock { state in
            counters.dropped.increment(by: state.waitingCount)
            for barrier in state.barriers.values { barrier.complete(.failure(.closed)) }
            state = State(link: .shut)
        }
        state.wakeAll()
    }
}

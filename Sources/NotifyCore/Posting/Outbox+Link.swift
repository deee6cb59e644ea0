// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Outbox {
    /// Opens the connection, unless it is open, and waits until the bus has let us in.
    func openIfNeeded(_ state: inout State) throws(NotifyBusError) {
        switch state.link {
        case .open: return
        case .shut: throw .closed
        case .opening: throw .disconnected
        case .closed:
            // With posts waiting, the reading thread does it, less and less often.
            if !state.isDrained { throw .disconnected }
        }
        let connection = try BusConnection(address: bus.resolveAddress(), title: bus.title)
        let deadline = MonotonicTime.now + Outbox.openingLimit
        while true {
            if let refusal = welcome(connection) {
                try refusal.get()
                state.link = .open(connection)
                return
            }
            var request = pollfd(fd: connection.descriptor, events: connection.events, revents: 0)
            let timeout = deadline.millisecondsFromNow
            if timeout == 0 { throw .timedOut("let this program in") }
            if poll(&request, 1, timeout) > 0 { connection.service(request.revents) }
        }
    }

    /// Looks for the answer to Hello.
    ///
    /// - Returns: nil while there is none.
    private func welcome(_ connection: BusConnection) -> Result<Void, NotifyBusError>? {
        while let message = connection.next() {
            switch message.kind {
            case .reply where message.replySerial == connection.helloSerial && message.isFromBus:
                return .success(())
            case .error where message.replySerial == connection.helloSerial && message.isFromBus:
                return .failure(message.refusalError(by: bus.title))
            case .disconnected:
                return .failure(BusConnection.refusedEntry(bus.title))
            default: continue
            }
        }
        return nil
    }

    // MARK: - For the reading thread

    var pollRequest: PollRequest {
        state.withLock { state in
            switch state.link {
            case .closed:
                return PollRequest(deadline: state.isDrained ? nil : state.retry.time ?? .now)
            case .opening(let connection, let limit):
                return PollRequest(descriptor: connection.descriptor, events: connection.events, deadline: limit)
            case .open(let connection):
                let events = Int16(POLLIN) | (state.isDrained ? 0 : Int16(POLLOUT))
                return PollRequest(descriptor: connection.descriptor, events: events)
            case .shut:
                return PollRequest()
            }
        }
    }

    /// Does what the clock or the socket demand.
    func service(_ events: Int16) {
        let mustWakeWaiters = state.withLock { state in
            switch state.link {
            case .shut:
                return false
            case .closed:
                if !state.isDrained, (state.retry.time ?? .now) <= .now { reopen(&state) }
            case .opening(let connection, let limit):
                if events != 0 { connection.service(events) }
                continueOpening(connection, limit, &state)
            case .open(let connection):
                if events & ~Int16(POLLOUT) != 0 { read(connection, events & ~Int16(POLLOUT), &state) }
                if events & Int16(POLLOUT) != 0 { drain(&state) }
            }
            if case .closed = state.link { return true }
            return state.isDrained
        }
        if mustWakeWaiters, events != 0 { state.wakeAll() }
    }

    private func reopen(_ state: inout State) {
        do throws(NotifyBusError) {
            let connection = try BusConnection(address: bus.resolveAddress(), title: bus.title)
            state.link = .opening(connection, until: .now + Outbox.openingLimit)
        } catch {
            state.retry.schedule()
        }
    }

    private func continueOpening(_ connection: BusConnection, _ limit: MonotonicTime, _ state: inout State) {
        switch welcome(connection) {
        case .success:
            state.link = .open(connection)
            state.retry.reset()
            drain(&state)
        case .failure:
            lose(&state)
        case nil:
            if limit <= .now { lose(&state) }
        }
    }

    private func read(_ connection: BusConnection, _ events: Int16, _ state: inout State) {
        connection.service(events)
        while let message = connection.next() {
            switch message.kind {
            case .reply, .error:
                // Anybody may send what looks like an answer.
                guard message.isFromBus else { continue }
                state.barriers.removeValue(forKey: message.replySerial)?.complete(.success(()))
            case .call where message.wantsReply && state.rest.count < Outbox.batchSize:
                // Goes out in its turn: between whole messages, and never without bound.
                state.rest.append(connection.refusalBytes(serial: state.nextSerial()))
                drain(&state)
            case .disconnected:
                return lose(&state)
            case .signal, .call, .useless: continue
            }
        }
    }

    /// Writes what waits, as far as the socket takes it.
    func drain(_ state: inout State) {
        guard case .open(let connection) = state.link else { return }
        while true {
            if state.rest.isEmpty {
                state.inFlight.removeAll(keepingCapacity: true)
                while state.rest.count < Outbox.batchSize, let name = state.backlog.popFirst() {
                    state.inFlight.append(name)
                    state.rest.append(state.templates.bytes(for: name, serial: state.nextSerial()))
                }
                if state.rest.isEmpty { return }
            }
            switch state.rest.write(to: connection.descriptor) {
            case .progress: continue
            case .full: return
            case .failed: return lose(&state)
            }
        }
    }

    /// Gives up a connection that is gone. What was being written is said again on the next one: it may be heard
    /// twice, but no name is lost.
    func lose(_ state: inout State) {
        for barrier in state.barriers.values { barrier.complete(.failure(BusConnection.lossError(bus.title))) }
        state.barriers.removeAll()
        state.link = .closed
        state.rest = WriteBuffer()
        var backlog = MergingQueue<NotifyName>()
        for name in state.inFlight { _ = backlog.enqueue(name) }
        while let name = state.backlog.popFirst() { _ = backlog.enqueue(name) }
        state.backlog = backlog
        state.inFlight.removeAll()
        if !state.isDrained { state.retry.schedule() }
    }
}

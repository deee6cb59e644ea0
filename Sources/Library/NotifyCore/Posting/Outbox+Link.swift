// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Opening and losing the connection. Opening takes as long as the bus takes, so the lock is not held meanwhile.
///
/// The leader opens it for what is queued. A caller that may wait opens it on its own thread, if nothing is.
extension Outbox {
    /// Ensures that there is a connection, for a caller that may wait.
    ///
    /// The first one is opened here, unless posts wait for the leader to open it, and other threads that need it wait for the
    /// outcome. After a loss this only connects, which shows immediately whether there is a bus; the leader waits for the
    /// bus to accept the connection.
    ///
    /// - Returns: whether the leader has to continue.
    func open(until deadline: MonotonicTime?) throws(NotifyBusError) -> Bool {
        let busLimit = MonotonicTime.now + Handshake.usualLimit
        let limit = min(deadline ?? busLimit, busLimit)
        var failuresBefore: Int?
        let claim: Result<Claim, NotifyBusError>? = state.wait(until: limit) { state in
            let failures = failuresBefore ?? state.failedAttempts
            failuresBefore = failures
            switch state.link {
            case .open: return .success(.none)
            case .connecting, .opening: return state.wasOpen ? .success(.none) : nil
            case .shut: return .failure(.closed)
            case .closed:
                // The attempt that was waited for has failed, and another one would fail as well.
                if failures != state.failedAttempts, let error = state.openingError { return .failure(error) }
                // With posts queued, the leader opens it, at growing intervals.
                if !state.isDrained { return state.isDueAtOnce ? nil : .failure(state.absence ?? .disconnected) }
                state.link = .connecting
                return .success(state.wasOpen ? .again : .first)
            }
        }
        guard let claim else { throw .timedOut("accept the connection") }
        switch try claim.get() {
        case .none: return false
        case .again:
            try connectAgain()
            return true
        case .first:
            try connectFirst(until: limit, isCallersLimit: limit < busLimit)
            return false
        }
    }

    /// Completes a barrier when there is a connection. The leader opens it.
    ///
    /// - Returns: whether the leader is needed.
    func open(_ barrier: Barrier) -> Bool {
        let outcome: Result<Void, NotifyBusError>? = state.withLock { state in
            if state.link == .shut { return .failure(.closed) }
            if state.link == .open { return .success(()) }
            state.openings.append(barrier)
            return nil
        }
        if let outcome { barrier.complete(outcome) }
        return outcome == nil
    }

    /// What a thread that needs a connection has to do to get one.
    private enum Claim { case none, first, again }

    private func connectFirst(until limit: MonotonicTime, isCallersLimit: Bool) throws(NotifyBusError) {
        do throws(NotifyBusError) {
            let handshake = try Handshake(address: bus.resolveAddress(), title: bus.title, until: limit)
            let welcome = try handshake.wait { descriptor throws(NotifyBusError) in
                // So that closing the center ends the wait.
                try state.withLock { state throws(NotifyBusError) in
                    guard state.link == .connecting else { throw .closed }
                    state.openingDescriptor = descriptor
                }
            }
            let openings = try state.withLock { state throws(NotifyBusError) in
                state.openingDescriptor = -1
                guard state.link == .connecting else { throw .closed }
                state.connectionNumber += 1
                state.retry.reset()
                return become(open: handshake.connection, welcome, &state)
            }
            noteNews()
            for opening in openings { opening.complete(.success(())) }
        } catch {
            throw fail(with: error, saysNothing: isCallersLimit && error.code == .timedOut)
        }
        state.wakeAll()
    }

    /// The bus has accepted the connection.
    ///
    /// - Returns: those that wait for it.
    private func become(open connection: BusConnection, _ welcome: BusMessage, _ state: inout State) -> [Barrier] {
        if let name = welcome.text { ownName.set(name) }
        // The system bus's policy keeps its statistics from everyone else, and logs attempts.
        state.pace = PostingPace(welcome: welcome, mayLook: bus != .system || geteuid() == 0)
        state.connection = connection
        state.descriptor = connection.descriptor
        state.handshake = nil
        state.link = .open
        (state.wasOpen, state.absence) = (true, nil)
        return state.takeOpenings()
    }

    /// Reconnects after a loss. The caller has already claimed this task.
    private func connectAgain() throws(NotifyBusError) {
        do throws(NotifyBusError) {
            let handshake = try Handshake(address: bus.resolveAddress(), title: bus.title)
            try state.withLock { state throws(NotifyBusError) in
                guard state.link == .connecting else { throw .closed }
                state.handshake = handshake
                state.connectionNumber += 1
                state.link = .opening
            }
        } catch {
            throw fail(with: error)
        }
    }

    /// Notes that connecting failed.
    ///
    /// - Parameter saysNothing: whether the caller's time was up, which says nothing about the bus: others may have more.
    /// - Returns: why.
    private func fail(with error: NotifyBusError, saysNothing: Bool = false) -> NotifyBusError {
        let (reason, failed): (NotifyBusError, [Barrier]) = state.withLock { state in
            state.openingDescriptor = -1
            guard state.link == .connecting else { return (.closed, []) }
            state.link = .closed
            state.failedAttempts += 1
            state.openingError = saysNothing ? nil : error
            if !saysNothing { state.absence = error }
            if !state.isDrained { state.retry.schedule() }
            // If it says nothing about the bus, the leader tries for those that have more time.
            return (error, state.takeBarriers() + (saysNothing ? [] : state.takeOpenings()))
        }
        noteNews()
        state.wakeAll()
        for barrier in failed { barrier.complete(.failure(reason)) }
        return reason
    }

    /// Gives up a lost connection. Posts that were being written are sent again on the next one.
    ///
    /// - Parameter reason: why, if it was not accepted in the first place.
    func lose(_ state: inout State, because reason: NotifyBusError? = nil) {
        let reason = reason ?? BusConnection.lossError(bus.title)
        state.absence = reason
        noteNews()
        for barrier in state.takeBarriers() { barrier.complete(.failure(reason)) }
        ownName.forget()
        state.connection = nil
        state.descriptor = -1
        state.handshake = nil
        state.link = .closed
        state.rest = BusOutput()
        state.pace = PostingPace()
        state.queue.startAgain()
        if !state.isDrained { state.retry.schedule() }
    }

    // MARK: - For the leader

    var pollRequest: PollRequest {
        state.withLock { state in
            switch state.link {
            case .closed:
                if !state.openings.isEmpty { return PollRequest(deadline: .now) }
                return PollRequest(deadline: state.isDrained ? nil : state.retry.time ?? .now)
            case .connecting:
                // By another thread, which does not wake this one.
                if state.isDrained, state.openings.isEmpty { return PollRequest() }
                return PollRequest(deadline: .now + 20)
            case .shut:
                return PollRequest()
            case .opening:
                guard let handshake = state.handshake else { return PollRequest() }
                return PollRequest(
                    descriptor: handshake.descriptor,
                    events: handshake.events,
                    deadline: handshake.deadline,
                    connection: state.connectionNumber
                )
            case .open:
                guard let connection = state.connection else { return PollRequest() }
                let events = Int16(POLLIN) | (state.canWrite ? Int16(POLLOUT) : 0)
                return PollRequest(
                    descriptor: connection.descriptor,
                    events: events,
                    // Nothing is asked before the rest has been written.
                    deadline: state.rest.isEmpty ? state.pace.deadline : nil,
                    connection: state.connectionNumber
                )
            }
        }
    }

    /// Handles timeouts and the socket.
    ///
    /// - Parameter number: the connection that the events belong to. A posting thread may have found the connection
    ///   broken and replaced it since: a hang-up of the old one says nothing about the new one.
    func service(_ events: Int16, on number: Int) {
        let (hasChanged, mustConnect) = state.withLock { state in
            let events = number == state.connectionNumber ? events : 0
            let before = (state.link, state.queue.written)
            switch state.link {
            case .shut, .connecting:
                break
            case .closed:
                if !state.openings.isEmpty || !state.isDrained && (state.retry.time ?? .now) <= .now {
                    state.link = .connecting
                    return (false, true)
                }
            case .opening:
                continueOpening(events, &state)
            case .open:
                // Until a pending reply has arrived, nothing more is prepared than the socket accepts.
                let mayGoOn = events & Int16(POLLOUT) != 0 || state.pace.isFull
                if events & ~Int16(POLLOUT) != 0 { read(events & ~Int16(POLLOUT), &state) }
                if mayGoOn { drain(&state) }
            }
            return ((state.link, state.queue.written) != before, false)
        }
        if mustConnect { try? connectAgain() }
        if hasChanged { state.wakeAll() }
    }

    private func continueOpening(_ events: Int16, _ state: inout State) {
        guard let handshake = state.handshake else { return }
        switch handshake.proceed(events) {
        case .success(let welcome):
            let openings = become(open: handshake.connection, welcome, &state)
            noteNews()
            state.retry.reset()
            drain(&state)
            for opening in openings { opening.complete(.success(())) }
        case .failure(let error): failOpening(with: error, &state)
        case nil: break
        }
    }

    /// The bus has not accepted the connection.
    private func failOpening(with error: NotifyBusError, _ state: inout State) {
        lose(&state, because: state.wasOpen ? nil : error)
        state.absence = error
        state.failedAttempts += 1
        state.openingError = error
        for opening in state.takeOpenings() { opening.complete(.failure(error)) }
    }
}

extension Outbox.State {
    mutating func takeBarriers() -> [Barrier] {
        defer {
            barriers.removeAll()
            laterBarriers.removeAll()
            launcherBarriers.removeAll()
            flushes.removeAll()
        }
        var all = laterBarriers.map(\.barrier) + flushes.map(\.barrier)
        barriers.forEach { all.append($0) }
        launcherBarriers.forEach { all.append($0) }
        return all
    }

    mutating func takeOpenings() -> [Barrier] {
        defer { openings = [] }
        return openings
    }
}

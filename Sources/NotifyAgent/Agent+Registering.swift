// SPDX-License-Identifier: Apache-2.0

import Glibc
import Logging
import NotifyCore

extension Agent {
    func register(_ call: BusCall, _ registration: Registration, on link: borrowing BusLink) {
        if registration.socket.value >= 0, !mayKeep(registration.socket.value, link) {
            logger.debug("lets a socket go", metadata: ["connection": "\(call.sender)"])
            registration.socket.close()
        }
        if let known = directory[call.sender] { return renew(known, call, registration, on: link) }
        identity.findClient(call.sender, link) { [self] answer, link in
            switch answer {
            case .failure(let fault): link.refuse(call, fault)
            case .success(let client):
                if let known = directory[call.sender] { return renew(known, call, registration, on: link) }
                enter(call, registration, client, on: link)
            }
        }
    }

    /// Whatever else than a connection to this bus somebody hands over might be fed for ever, or block. A connection
    /// whose socket is not kept is watched by the bus, and not parked.
    private func mayKeep(_ socket: Int32, _ link: borrowing BusLink) -> Bool {
        guard let other = SocketIdentity(socket), Descriptors.canSpare(socket) else { return false }
        return other == SocketIdentity(link.descriptor)
    }

    /// A connection registers that has done so before: what it says now replaces what it said then.
    private func renew(
        _ connection: ManagedConnection,
        _ call: BusCall,
        _ registration: Registration,
        on link: borrowing BusLink
    ) {
        connection.program = registration.program
        connection.toldDecider = registration.believedDecider
        let superfluous = connection.subjects.subtracting(registration.subjects)
        connection.subjects = registration.subjects
        if registration.socket.value >= 0 {
            watcher.forgetSocket(connection.number)
            connection.replaceSocket(by: registration.socket.take())
            watchEnd(of: connection, link)
        }
        forget(superfluous, of: connection, link)
        restoreStates(registration, user: connection.user)
        holdIfNeeded(registration.subjects, for: connection, link) { [self] failure, link in
            if let failure { return link.refuse(call, .failed(failure)) }
            link.reply(to: call, [.string(connection.transition.wish.rawValue), .strings([])])
            tellDecider(connection, link)
            connection.followsDesktop = registration.followsDesktop
            reconsider([connection], link)
            updateWatch(of: connection.process)
        }
    }

    private func enter(
        _ call: BusCall,
        _ registration: Registration,
        _ client: Identity.Client,
        on link: borrowing BusLink
    ) {
        startSources()
        let user = client.caller.user
        let process = self.process(of: client, link)
        let previous = directory[registration.previous].flatMap { $0.process === process && $0.user == user ? $0 : nil }
        let connection = ManagedConnection(
            name: call.sender,
            number: directory.nextNumber(),
            process: process,
            user: user,
            registration: registration
        )
        connection.begin(in: initialState(of: connection, registration, previous))
        if !process.isWatched { connection.closeSocket() }
        if process.connections.isEmpty { present(process) }
        directory.insert(connection)
        restoreStates(registration, user: user)
        watchEnd(of: connection, link)
        logger.debug(
            "registered",
            metadata: ["connection": "\(call.sender)", "process": "\(process.pid)", "state": "\(connection.state)"]
        )
        if let previous { inherit(from: previous, to: connection, link) }
        let returns = previous != nil && connection.stateAfterParking == .foreground
        guard connection.state == .suspended else {
            link.reply(to: call, [.string(connection.state.rawValue), .strings([])])
            tellDecider(connection, link)
            return updateWatch(of: process)
        }
        hold(connection.subjects, for: connection, link) { [self] failure, link in
            if let failure { logger.warning("\(failure)", metadata: ["connection": "\(connection.name)"]) }
            guard directory[number: connection.number] === connection else { return }
            welcomeBack(connection, call, returns: returns, on: link)
        }
    }

    /// Answers one that is suspended, or that was parked and runs again.
    ///
    /// Its names stay with the agent until the observer has confirmed that it hears them itself.
    private func welcomeBack(
        _ connection: ManagedConnection,
        _ call: BusCall,
        returns: Bool,
        on link: borrowing BusLink
    ) {
        guard returns else {
            link.reply(to: call, [.string(LifecycleState.suspended.rawValue), .strings([])])
            return tellDecider(connection, link)
        }
        let names = connection.pending.take().map(\.string)
        // A post that comes before these rules is made good by the answer, which follows them.
        let roused = holds.rouse(connection.held.names)
        if !roused.isEmpty { link.hold(names: Array(roused)) { _, _ in } }
        link.reply(to: call, [.string(LifecycleState.foreground.rawValue), .strings(names)])
        tellDecider(connection, link)
        perform(connection.transition.want(.foreground, by: []), for: connection, link)
        updateWatch(of: connection.process)
    }

    private func initialState(
        of connection: ManagedConnection,
        _ registration: Registration,
        _ previous: ManagedConnection?
    ) -> LifecycleState {
        let process = connection.process
        connection.person = directory.wish(for: process)
        if let previous {
            connection.person = previous.person
            connection.remembered = previous.remembered
            connection.decision = previous.decision
            if case .none = previous.parking, !previous.transition.isHolding { return previous.transition.wish }
            return previous.stateAfterParking == .background ? .background : .suspended
        }
        if let state = registration.state { believe(registration.decider, state, of: connection) }
        connection.decision = decide(connection)
        return connection.decision.state
    }

    /// Takes over what an agent before this one had decided, as the observer remembers it.
    private func believe(_ decider: String, _ state: LifecycleState, of connection: ManagedConnection) {
        switch Decider(name: decider) {
        case .person: connection.person = connection.person ?? state
        case .program: connection.process.report = connection.process.report ?? state
        case .source(let name): connection.remembered = Decision(state, by: .source(name))
        case .exemption, .rule: break
        }
    }

    /// Gives a connection what is kept for the one that it takes the place of.
    private func inherit(
        from previous: ManagedConnection,
        to connection: ManagedConnection,
        _ link: borrowing BusLink
    ) {
        let wasParked = if case .none = previous.parking { false } else { true }
        connection.stateAfterParking = wasParked ? previous.stateAfterParking : previous.transition.wish
        for name in previous.pending.take() where connection.subjects.contains(name) {
            _ = connection.pending.insert(name)
        }
        connection.dropped = previous.dropped
        if case .draining = previous.parking { heirs[previous.number] = connection }
        // The names go from hand to hand: the rules that both need stay on the bus.
        if connection.state == .suspended { hold(connection.subjects, for: connection, link) { _, _ in } }
        remove(previous, link)
    }

    /// The entry of a process. One with the same number that began at another time has ended, and may not have been
    /// noticed yet.
    private func process(of client: Identity.Client, _ link: borrowing BusLink) -> ManagedProcess {
        let handle = client.process
        for other in directory.processes(handle.pid) where other.handle.key.start != handle.key.start {
            processHasEnded(other.number, link)
        }
        if let known = directory.processes[handle.key] { return known }
        let process = ManagedProcess(client, number: directory.nextNumber())
        if process.isWatched { watcher.watch(handle, number: process.number) }
        return process
    }

    // MARK: - Names that come and go

    func addNames(_ call: BusCall, _ added: Subjects, on link: borrowing BusLink) throws(BusFault) {
        guard let connection = directory[call.sender] else { throw .notRegistered }
        var all = connection.subjects
        all.formUnion(added)
        guard all.names.count <= Subjects.maximumNames, all.prefixes.count <= Subjects.maximumPrefixes else {
            throw .invalidArguments("The connection has too many names.")
        }
        connection.subjects = all
        holdIfNeeded(added, for: connection, link) { failure, link in
            if let failure { link.refuse(call, .failed(failure)) } else { link.reply(to: call) }
        }
    }

    func removeNames(_ call: BusCall, _ removed: Subjects, on link: borrowing BusLink) throws(BusFault) {
        guard let connection = directory[call.sender] else { throw .notRegistered }
        connection.subjects = connection.subjects.subtracting(removed)
        forget(removed, of: connection, link)
        link.reply(to: call)
    }

    private func forget(_ removed: Subjects, of connection: ManagedConnection, _ link: borrowing BusLink) {
        release(removed, of: connection, link)
        forgetStates(of: removed.names)
        if !connection.pending.isEmpty { connection.pending.remove { !connection.subjects.contains($0) } }
    }

    private func holdIfNeeded(
        _ subjects: Subjects,
        for connection: ManagedConnection,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (String?, borrowing BusLink) -> Void
    ) {
        guard connection.transition.isHolding else { return completion(nil, link) }
        hold(subjects, for: connection, link, then: completion)
    }
}

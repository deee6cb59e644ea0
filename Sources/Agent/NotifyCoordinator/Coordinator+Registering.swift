// SPDX-License-Identifier: Apache-2.0

import NotifyNames

extension Coordinator {
    mutating func register(_ call: CallID, _ newcomer: Newcomer) throws(Refusal) {
        var outlived: ConnectionID?
        if let known = directory.id(of: newcomer.name) {
            guard directory[known]?.inheritance != ObservingConnection.Inheritance.none,
                newcomer.statement.state != .suspended
            else { return try renew(known, call, newcomer) }
            // It has gone on without an agent, so that the facts handed over for it are of no use any more.
            outlived = known
        }
        defer { if let outlived { remove(outlived) } }
        let previous = predecessor(of: newcomer)
        // One that replaces another takes its place.
        if previous == nil { try ledger.checkConnection(of: newcomer.user) }
        if let previous, let subjects = directory[previous]?.subjects {
            // The names that the previous one observed no longer count.
            ledger.observeLess(subjects, by: directory[previous]?.holder ?? newcomer.holder)
            do throws(Refusal) {
                try ledger.observe(newcomer.statement.subjects, by: newcomer.holder)
            } catch {
                try? ledger.observe(subjects, by: directory[previous]?.holder ?? newcomer.holder)
                throw error
            }
        } else {
            try ledger.observe(newcomer.statement.subjects, by: newcomer.holder)
        }
        enter(call, newcomer, previous)
    }

    /// The connection that this one replaces.
    private func predecessor(of newcomer: Newcomer) -> ConnectionID? {
        for name in [newcomer.statement.previous] + newcomer.statement.earlier {
            guard let id = directory.id(of: name), let other = directory[id], other.process == newcomer.process.id,
                other.user == newcomer.user
            else { continue }
            return id
        }
        return nil
    }

    private mutating func enter(_ call: CallID, _ newcomer: Newcomer, _ previous: ConnectionID?) {
        if directory.observers.isEmpty { emit(.observersCome) }
        for ended in directory.earlier(than: newcomer.process.id) { processEnded(ended) }
        if directory[process: newcomer.process.id] == nil { directory.insert(ObservingProcess(newcomer.process)) }
        let isFirst = directory[process: newcomer.process.id]?.connections.isEmpty == true
        var observer = ObservingConnection(newcomer, id: directory.nextID(), agentUser: configuration.user, now: now)
        let id = observer.id
        let state = initialState(of: &observer, newcomer.statement, previous.flatMap { directory[$0] })
        let isSuspended = state == .suspended
        observer.transition = Transition(state, isProxied: isSuspended, isEntering: state != .foreground)
        directory.insert(observer)
        ledger.connectionCame(of: observer.user)
        observedNames.insert(observer.subjects)
        restoreStates(newcomer.statement, of: observer.user, by: id)
        emit(.begin(id))
        if isFirst { emit(.present(observer.process)) }
        letRun(observer.process)
        if let previous { inherit(from: previous, to: id) }
        if state == .suspended {
            subscribe(observer.subjects, for: id, then: .registration(call))
        } else {
            answer(call, .registered(state, pending: [], isComplete: false))
            tellDecider(id)
            hasEntered(id, isInForce: false)
            reconsider([id])
            updateLook(at: observer.process)
        }
        // The state that it remembers may have been reported for the whole process.
        reconsider(directory.connections(of: observer.process).filter { $0 != id })
    }

    /// A connection has been told that it is registered.
    mutating func hasEntered(_ id: ConnectionID, isInForce: Bool) {
        perform(directory[id]?.transition.entered(isInForce: isInForce), for: id)
        if let observer = directory[id] { keepStates(of: observer.subjects.names, by: id) }
    }

    private mutating func initialState(
        of observer: inout ObservingConnection,
        _ statement: Newcomer.Statement,
        _ previous: ObservingConnection?
    ) -> LifecycleState {
        if let process = directory[process: observer.process] {
            observer.person = directory.wish(for: process, isNew: statement.state == nil)
            if let previous { observer.person = previous.person }
            // Freezing a process suspends all of it, whichever connection was meant.
            if process.freezing.wish != nil { observer.person = .suspended }
        }
        if let previous {
            observer.remembered = previous.remembered
            observer.decision = previous.decision
            if !previous.isParked, !previous.transition.isProxied { return previous.transition.wish }
            return previous.stateAfterParking == .background ? .background : .suspended
        }
        if let state = statement.state {
            believe(statement.decider, state, of: &observer)
            // It counts once the person who decided releases the program.
            if observer.person != nil, let reported = statement.reported { believe(report: reported, of: observer) }
        }
        observer.decision = decide(observer)
        return observer.decision.state
    }

    /// Takes over what an earlier agent had decided, as the observer remembers it.
    mutating func believe(_ decider: String, _ state: LifecycleState, of observer: inout ObservingConnection) {
        switch Decider(name: decider) {
        case .person: observer.person = observer.person ?? state
        case .program: believe(report: state, of: observer)
        case .source(let name): observer.remembered = Decision(state, by: .source(name))
        case .exemption, .rule: break
        }
    }

    private mutating func believe(report: LifecycleState, of observer: ObservingConnection) {
        let known = directory[process: observer.process]?.report
        directory[process: observer.process]?.report = known ?? report
    }

    /// Passes on to a connection what is kept for the one that it replaces.
    private mutating func inherit(from previous: ConnectionID, to id: ConnectionID) {
        guard let old = directory[previous] else { return }
        directory.change(id) { observer in
            observer.stateAfterParking = old.isParked ? old.stateAfterParking : old.transition.wish
            if observer.state == .suspended, observer.stateAfterParking == .foreground {
                observer.comingBack.stage = .registering
            }
            // The agent is not told what it adds while it registers.
            let known = old.isParked && old.hasSocket ? Subjects() : old.subjects.subtracting(old.comingBack.gaps)
            if observer.state == .suspended { observer.comingBack.gaps = observer.subjects.subtracting(known) }
            (observer.dropped, observer.reportedDropped) = (old.dropped, old.reportedDropped)
        }
        guard let observer = directory[id] else { return }
        let names = old.comingBack.names + takeDelivered(to: previous) + takePending(of: previous)
        for name in names where observer.subjects.contains(name) { _ = keep(name, for: id) }
        // A spurious notification beats silence.
        for name in observer.comingBack.gaps.names { _ = keep(name, for: id) }
        heirs.replace(previous, by: id)
        // With its socket it is still to be drained, which ends with it.
        if case .draining = old.parking, !old.hasSocket { heirs.set(id, of: previous) }
        // Before the previous one is removed: the rules that both need stay on the bus.
        if observer.state == .suspended, !observer.isRelayed {
            perform(proxies.subscribe(observer.subjects, for: id, of: observer.user, inPlaceOf: previous))
        }
        remove(previous, keepsAccount: true)
    }

    /// A registered connection registers again: its new registration replaces the old one.
    private mutating func renew(_ id: ConnectionID, _ call: CallID, _ newcomer: Newcomer) throws(Refusal) {
        guard let observer = directory[id] else { return }
        let (old, new) = (observer.subjects, newcomer.statement.subjects)
        ledger.observeLess(old, by: observer.holder)
        do throws(Refusal) {
            try ledger.observe(new, by: observer.holder)
        } catch {
            try? ledger.observe(old, by: observer.holder)
            throw error
        }
        directory.change(id) { observer in
            observer.program = newcomer.statement.program
            observer.toldDecider = newcomer.statement.believedDecider
            observer.followsDesktop = newcomer.statement.followsDesktop
            observer.subjects = new
            observer.additions = 0
            if newcomer.hasSocket { observer.hasSocket = newcomer.process.isWatched }
        }
        observedNames.insert(new)
        observedNames.remove(old)
        if newcomer.hasSocket { emit(.begin(id)) }
        if observer.inheritance != .none { letRun(observer.process) }
        forget(old.subtracting(new), of: id)
        restoreStates(newcomer.statement, of: observer.user, by: id)
        holdIfNeeded(new, for: id, then: .renewal(call))
    }

    // MARK: - Added and removed names

    mutating func addNames(_ call: CallID, _ id: ConnectionID, _ added: Subjects) throws(Refusal) {
        // In place: a program that adds ten thousand names one by one must not have them copied each time.
        let change = directory.change(id) { observer in
            let new = added.subtracting(observer.subjects)
            let fits =
                observer.subjects.names.count + new.names.count <= Subjects.maximumNames
                && observer.subjects.prefixes.count + new.prefixes.count <= Subjects.maximumPrefixes
            return (new: new, fits: fits, holder: observer.holder)
        }
        guard let (new, fits, holder) = change else { return }
        guard fits else {
            throw Refusal(
                .limitExceeded,
                "A connection can observe at most \(Subjects.maximumNames) names and \(Subjects.maximumPrefixes) prefixes."
            )
        }
        try ledger.observe(new, by: holder)
        directory.change(id) { observer in
            observer.subjects.formUnion(new)
            if observer.isParked, !observer.hasSocket { observer.comingBack.gaps.formUnion(new) }
        }
        observedNames.insert(new)
        keepStates(of: new.names, by: id)
        holdIfNeeded(added, for: id, then: .addition(call))
    }

    mutating func removeNames(_ call: CallID, _ id: ConnectionID, _ removed: Subjects) {
        let change = directory.change(id) { observer in
            let gone = removed.intersection(observer.subjects)
            observer.subjects.subtract(gone)
            return (gone: gone, holder: observer.holder)
        }
        guard let (gone, holder) = change else { return }
        ledger.observeLess(gone, by: holder)
        observedNames.remove(gone)
        forget(gone, of: id)
        answer(call, .done)
    }

    /// A connection no longer observes these, which has already been noted.
    private mutating func forget(_ removed: Subjects, of id: ConnectionID) {
        guard !removed.isEmpty else { return }
        perform(proxies.unsubscribe(removed, for: id))
        nameStates.forget(removed.names) { observedNames.containsExactly($0) }
        noLongerKeepsStates(id, of: removed.names)
        dropPending(of: id)
    }

    private mutating func holdIfNeeded(
        _ subjects: Subjects,
        for id: ConnectionID,
        then waiter: ObservingConnection.ProxyWaiter
    ) {
        // If it is being parked, it will need them as well.
        if directory[id]?.transition.isProxied == true || directory[id]?.isParked == true {
            subscribe(subjects, for: id, then: waiter)
        } else {
            resume(waiter, id, nil)
        }
    }

    // MARK: - Ends

    /// A connection ends without having been parked.
    mutating func connectionEnded(_ id: ConnectionID) {
        endInterim(id)
        guard let observer = directory[id], !observer.isParked else { return }
        remove(id)
    }

    /// Forgets a connection, and everything kept for it.
    ///
    /// - Parameter keepsAccount: whether the names that it observed have already been transferred to another
    ///   connection's account.
    mutating func remove(_ id: ConnectionID, keepsAccount: Bool = false) {
        guard var observer = directory.remove(id) else { return }
        ledger.forgetPending(observer.pending.take() + observer.deliveries.joined(), of: observer.user)
        ledger.connectionWent(of: observer.user)
        if !keepsAccount { ledger.observeLess(observer.subjects, by: observer.holder) }
        observedNames.remove(observer.subjects)
        nameStates.forget(observer.subjects.names) { observedNames.containsExactly($0) }
        witnesses.forget(id)
        window.forget(.states(id))
        noLongerKeepsStates(id, of: observer.subjects.names)
        perform(proxies.unsubscribeAll(for: id))
        window.forget(.state(id))
        window.forget(.delivery(id))
        for waiter in observer.proxyWaiters {
            // It is not heard any more, but the call is no longer pending.
            switch waiter {
            case .addition(let call), .registration(let call), .renewal(let call):
                refuse(call, Refusal(.failed, "The connection has left the bus."))
            case .inheritance: isInherited(id)
            case .transition, .parking: break
            }
        }
        perform(observer.transition.end, for: id)
        for request in observer.parkingRequests { reached(request, id, nil) }
        emit(.forget(id, name: observer.name))
        processHasLost(observer.process)
        if directory.observers.isEmpty { emit(.observersHaveGone) }
    }

    /// A process has lost a connection.
    private mutating func processHasLost(_ id: ProcessID) {
        guard let process = directory[process: id] else { return }
        // Its program may have run for it alone.
        if !naps.isEmpty { mustReviewNaps = true }
        if process.connections.isEmpty, !process.facts.isWatched || !process.isWorthRemembering {
            forget(process)
        } else {
            freezeIfSuspended(id)
            updateLook(at: id)
        }
    }

    private mutating func forget(_ process: ObservingProcess) {
        // A process without observers must not stay frozen forever.
        thaw(process.id)
        settleRequests(waitingFor: process.id, failure: nil)
        directory.remove(process)
        emit(.forgetProcess(process.id))
    }

    mutating func processEnded(_ id: ProcessID) {
        guard let process = directory[process: id] else { return }
        for connection in process.connections.sorted() {
            if case .draining = directory[connection]?.parking { emit(.stopDraining(connection)) }
            remove(connection)
        }
        if let rest = directory[process: id] { forget(rest) }
    }
}

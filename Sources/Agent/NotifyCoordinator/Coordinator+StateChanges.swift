// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

extension Coordinator {
    // MARK: - SetState and Release

    /// The processes of a target, and those that are the same to the kernel: the caller of this method determines which
    /// of them the requester may not stop.
    package func processes(of target: Target) -> [ProcessID] {
        directory.wholes(of: directory.connections(of: target))
    }

    mutating func setState(
        _ call: CallID,
        _ caller: Caller,
        _ target: Target,
        _ state: LifecycleState,
        freezes: Bool,
        _ strangers: Set<ProcessID>
    ) throws(Refusal) {
        guard !freezes || state == .suspended else {
            throw Refusal(.invalidArguments, "Only suspended observers can be frozen.")
        }
        var meant = try connections(of: target, for: caller)
        var processes = directory.processes(of: meant)
        if state != .foreground {
            for id in processes {
                let application = directory[process: id]?.application ?? ""
                guard configuration.exemptApplications.contains(application) else { continue }
                throw Refusal(.accessDenied, "The agent's configuration keeps \(application) in the foreground.")
            }
        }
        if freezes {
            // A process is stopped as a whole, with all its connections.
            processes = directory.wholes(of: meant)
            try checkFreeze(processes, caller, strangers)
            meant = processes.flatMap { directory.connections(of: $0) }
            for id in processes { directory[process: id]?.freezing.want(by: caller.user) }
        }
        for user in Set(processes.map(\.user)).sorted() { directory.note(state, for: target, of: user) }
        for id in meant { directory[id]?.person = state }
        apply(meant, of: processes, call, .connections(meant.count), freezes: freezes)
    }

    private func checkFreeze(
        _ processes: [ProcessID],
        _ caller: Caller,
        _ strangers: Set<ProcessID>
    ) throws(Refusal) {
        for id in processes {
            guard !configuration.untouchables.contains(id.pid), directory[process: id]?.facts.isWatched == true else {
                throw Refusal(.invalidArguments, "Process \(id) can't be frozen.")
            }
            guard caller.mayChange(id.user), !strangers.contains(id) else {
                throw Refusal(
                    .accessDenied,
                    "Process \(id) runs with the rights of another user, so only root can freeze it, not user "
                        + "\(caller.user)."
                )
            }
        }
    }

    mutating func release(_ call: CallID, _ caller: Caller, _ target: Target?) throws(Refusal) {
        let meant: [ConnectionID]
        if let target {
            meant = try connections(of: target, for: caller)
            for user in Set(directory.processes(of: meant).map(\.user)).sorted() {
                directory.note(nil, for: target, of: user)
            }
        } else {
            meant = directory.all.filter { id in
                guard let observer = directory[id], observer.person != nil else { return false }
                return caller.mayChange(observer.user)
            }
            directory.forgetWishes(of: caller.user == 0 ? nil : caller.user)
        }
        for id in meant { directory[id]?.person = nil }
        // A person also decided that it is stopped.
        let processes = directory.processes(of: meant)
        for process in processes { thaw(process) }
        guard !meant.isEmpty else { return answer(call, .connections(0)) }
        apply(meant, of: processes, call, .connections(meant.count))
    }

    /// The connections of a target that a caller may change.
    private func connections(of target: Target, for caller: Caller) throws(Refusal) -> [ConnectionID] {
        let all = directory.connections(of: target)
        guard let first = all.first.flatMap({ directory[$0] }) else { throw Refusal.noSuchTarget(target) }
        let meant = all.filter { id in directory[id].map { caller.mayChange($0.user) } ?? false }
        // If others run the application too, only the caller's own part is meant.
        let isApplication = if case .application = target { true } else { false }
        guard !meant.isEmpty, meant.count == all.count || isApplication else {
            throw Refusal(
                .accessDenied,
                "'\(target)' belongs to user \(first.user): only that user and root can change its state, not user "
                    + "\(caller.user)."
            )
        }
        return meant
    }

    // MARK: - Report

    /// A process reports its own state.
    mutating func report(_ call: CallID, _ id: ConnectionID, _ state: LifecycleState) {
        guard let process = directory[id]?.process else { return }
        if state == .suspended, isReadyForNap(process) { return answer(call, .done) }
        directory[process: process]?.report = state
        apply(directory.connections(of: process), of: [process], call, .done)
    }

    // MARK: - Several connections

    /// Brings connections into the state decided for them, and answers the call once they are in it.
    private mutating func apply(
        _ connections: [ConnectionID],
        of processes: [ProcessID],
        _ call: CallID,
        _ answer: Effect.Answer,
        freezes: Bool = false
    ) {
        let deadline = now.nanoseconds + ChangeRequest.limit
        if requests.isEmpty { emit(.alarm(at: deadline)) }
        let request = requests.insert(
            ChangeRequest(
                asker: .call(call, answer),
                deadline: deadline,
                missing: Set(connections),
                running: freezes ? Set(processes) : []
            )
        )
        // This agent has remembered these only until there is a decision.
        for id in connections {
            directory[id]?.isRemembered = false
            directory[id]?.remembered = nil
        }
        change(connections, of: processes, request)
    }

    /// Decides again, and brings connections into the resulting state.
    private mutating func change(_ connections: [ConnectionID], of processes: [ProcessID], _ request: RequestID?) {
        for id in connections {
            guard let observer = directory[id] else { continue }
            let decision = decide(observer)
            if decision != observer.decision {
                directory[id]?.decision = decision
                tellDecider(id)
            }
        }
        if !naps.isEmpty { endStops(of: processes) }
        // A process that is to hear or to drop posts must be running.
        for process in processes where !mayStandStill(process) { thaw(process) }
        for id in connections {
            guard let observer = directory[id] else { continue }
            let state = observer.decision.state
            if observer.isParked {
                changeParked(id, to: state, request)
            } else if state == .suspended, observer.wasLeftSuspended {
                perform(directory.change(id) { $0.transition.stay() }, for: id)
                if let request { reached(request, id, nil) }
            } else {
                perform(directory[id]?.transition.want(state, by: request.map { [$0] } ?? []), for: id)
            }
        }
        for process in processes {
            freezeIfSuspended(process)
            updateLook(at: process)
        }
    }

    /// The decision takes effect immediately: it is the state in which the process will continue. But until its stream has
    /// been read, one that continues early may still hear posts through it.
    private mutating func changeParked(_ id: ConnectionID, to state: LifecycleState, _ request: RequestID?) {
        guard let observer = directory[id] else { return }
        let old = observer.state
        let new: LifecycleState = state == .background ? .background : .suspended
        let superseded = directory.change(id) { observer in
            observer.stateAfterParking = state
            // It may have been changing when its process was stopped.
            let effects = observer.transition.end
            // Posts that come before its names are subscribed are in its stream; if they are already, they are not.
            observer.transition = Transition(
                new,
                isProxied: new == .suspended,
                isCollecting: new == .suspended && (observer.transition.isCollecting || !observer.waitsForParking)
            )
            return effects
        }
        if new == .background {
            endProxy(of: id)
        } else if !proxies.subscribes(observer.subjects, for: id) {
            perform(proxies.subscribe(observer.subjects, for: id, of: observer.user))
        }
        if old != new { announce(id, from: old, to: new) }
        perform(superseded ?? [], for: id)
        if let request { settle(request, id, nil) }
    }

    /// A connection is in the state that a request asks for; one whose stream is being read, as soon as that has been.
    private mutating func settle(_ request: RequestID, _ id: ConnectionID, _ failure: String?) {
        if failure == nil, directory[id]?.parking == .draining {
            directory[id]?.parkingRequests.append(request)
        } else {
            reached(request, id, failure)
        }
    }

    /// Nothing can be heard through the connection any longer.
    mutating func connectionIsSilent(_ id: ConnectionID) {
        let requests = directory[id]?.parkingRequests ?? []
        directory[id]?.parkingRequests = []
        for request in requests { reached(request, id, nil) }
    }

    // MARK: - Deciding

    /// The state decided for a connection by everything that is known now.
    func decide(_ observer: ObservingConnection) -> Decision {
        guard let process = directory[process: observer.process] else { return observer.decision }
        let user = process.id.user
        var known = Circumstances()
        known.isExempt = configuration.exemptApplications.contains(process.application)
        known.person = observer.person
        known.report = process.report
        if let remembered = observer.remembered, case .source(let name) = remembered.decider, !sources.isSettled(name) {
            known.remembered = remembered
        }
        if !naps.isEmpty { known.nap = naps.state(of: process.id, application: process.application) }
        known.follows = configuration.facts.facts(for: process.application, asks: observer.followsDesktop)
        // Most programs follow nothing.
        if known.follows.contains(.sleep) { known.sleep = sources.sleep }
        if known.follows.contains(.session) {
            known.absence = sources.absence(user: user, session: process.facts.session)
        }
        if known.follows.contains(.focus) {
            known.focus = sources.focus(pid: process.id.pid, application: process.application, user: user)
        }
        return known.decision
    }

    /// Whether a connection is in, or changing to, the state that follows from everything known.
    package func isAsDecided(_ id: ConnectionID) -> Bool { directory[id].map { decide($0) == $0.decision } ?? true }

    /// Brings connections in line with changed decisions. No request waits for it.
    mutating func reconsider(_ connections: some Sequence<ConnectionID>) {
        let changed = connections.filter { !isAsDecided($0) }
        if !changed.isEmpty { change(changed, of: directory.processes(of: changed), nil) }
    }

    /// Ends in `changesAreInForce` when all pending changes have completed, after 5 seconds at the latest.
    mutating func awaitChanges(_ number: UInt64) {
        let changing = directory.all.filter { id in
            directory[id].map { observer in
                if observer.isParked { return observer.parking == .draining }
                return !observer.transition.isSettled && !observer.isLeftSuspended
            } ?? false
        }
        guard !changing.isEmpty else { return emit(.changesAreInForce(number)) }
        let deadline = now.nanoseconds + ChangeRequest.limit
        if requests.isEmpty { emit(.alarm(at: deadline)) }
        let request = requests.insert(
            ChangeRequest(asker: .inside(number), deadline: deadline, missing: Set(changing), running: [])
        )
        for id in changing {
            guard directory[id]?.isParked == false else {
                settle(request, id, nil)
                continue
            }
            perform(directory.change(id) { $0.transition.want($0.transition.wish, by: [request]) }, for: id)
        }
    }

    mutating func note(_ news: [String: SourceNews]) {
        for (source, fact) in sources.note(news) { emit(.announceFact(source: source, fact: fact)) }
        if !naps.isEmpty { focusMayHaveMoved() }
        reconsider(directory.all)
    }

    /// Informs a connection who has decided on its state, so that it can report that to a new agent if this one dies.
    mutating func tellDecider(_ id: ConnectionID) {
        guard let observer = directory[id], observer.toldDecider != observer.decision.decider else { return }
        directory[id]?.toldDecider = observer.decision.decider
        emit(.tellDecider(observer.recipient, observer.decision.decider))
    }

    // MARK: - Transitions

    /// Carries out the next steps of a connection's transition.
    mutating func perform(_ effects: [Transition<RequestID>.Effect]?, for id: ConnectionID) {
        for effect in effects ?? [] {
            switch effect {
            case .subscribe:
                guard let subjects = directory[id]?.subjects else { break }
                subscribe(subjects, for: id, then: .transition)
            case .unsubscribe: perform(proxies.unsubscribeAll(for: id))
            case .mark:
                // Sent along with the next call, so that little comes between the two.
                directory[id]?.isToBeMarked = true
            case .tell(let state):
                guard let observer = directory[id] else { break }
                window.enqueue(.state(id), state, of: observer.owner)
            case .awaitHeldBack: emit(.awaitHeldBack(id))
            case .deliver: deliverPending(to: id)
            case .forgetPending: _ = takePending(of: id)
            case .announce(let old, let new): announce(id, from: old, to: new)
            case .answer(let waiting, let outcome):
                let failure: String? = if case .failed(let text) = outcome { text } else { nil }
                for request in waiting { settle(request, id, failure) }
            }
        }
    }

    /// An external event changes the transition of a connection. A parked one has nothing pending.
    mutating func advance(
        _ id: ConnectionID,
        _ event: (inout Transition<RequestID>) -> [Transition<RequestID>.Effect]
    ) {
        guard let observer = directory[id], !observer.isParked else { return }
        perform(directory.change(id) { event(&$0.transition) }, for: id)
        guard directory[id]?.transition.isSettled == true else { return }
        freezeIfSuspended(observer.process)
        updateLook(at: observer.process)
    }

    // MARK: - State calls

    mutating func observerReplied(_ id: ConnectionID, _ reply: Event.Reply) {
        window.hasAnswered(.state(id))
        switch reply {
        case .done(let dropped, let isHoldingBack):
            // It has read what was sent to it before.
            directory[id]?.comingBack.hasRead()
            if let dropped { directory[id]?.reportedDropped = dropped }
            // If the agent dies before the stream has been read, the observer must not believe that it has everything.
            let isHoldingBack = isHoldingBack || heirs.isHeir(id)
            advance(id) { $0.observerAnswered(nil, isHoldingBack: isHoldingBack) }
        case .namesAdded: advance(id) { $0.observerHasAdded() }
        case .gone: connectionEnded(id)
        case .failed(let message):
            let name = directory[id]?.name ?? ""
            advance(id) { $0.observerAnswered("The observer \(name) answered '\(message)'.") }
        }
    }

    mutating func announce(_ id: ConnectionID, from old: LifecycleState, to new: LifecycleState) {
        guard let observer = directory[id], let process = directory[process: observer.process] else { return }
        directory[id]?.since = now.wallClock
        if new == .background { silenceInterim(of: observer.name) }
        emit(
            .announce(
                Effect.StateChange(
                    id: id,
                    name: observer.name,
                    process: process.id,
                    application: process.application,
                    from: old,
                    to: new
                )
            )
        )
    }

    // MARK: - Requests

    /// A connection has reached the state that a request asks for, or this prevented it.
    mutating func reached(_ request: RequestID, _ id: ConnectionID, _ failure: String?) {
        let over = requests.change(request) { request in
            request.missing.remove(id)
            request.failure = request.failure ?? failure
        }
        if let over { finish(over) }
    }

    /// No request waits any longer for a process to be frozen.
    mutating func settleRequests(waitingFor process: ProcessID, failure: String?) {
        for id in requests.waiting(for: process) {
            let over = requests.change(id) { request in
                request.running.remove(process)
                request.failure = request.failure ?? failure
            }
            if let over { finish(over) }
        }
    }

    private mutating func finish(_ request: ChangeRequest) {
        switch request.asker {
        case .inside(let number): emit(.changesAreInForce(number))
        case .call(let call, let answer):
            if let failure = request.failure {
                refuse(call, Refusal(.failed, failure))
            } else {
                self.answer(call, answer)
            }
        }
    }

    mutating func expireRequests() {
        let (expired, next) = requests.takeExpired(now: now.nanoseconds)
        for request in expired {
            guard case .call(let call, _) = request.asker else {
                finish(request)
                continue
            }
            let stragglers = request.missing.sorted().compactMap { directory[$0] }.map { observer in
                "\(observer.name) (process \(observer.process))"
            }
            let processes = request.running.sorted().map { "process \($0), which has yet to be frozen" }
            let all = stragglers + (stragglers.isEmpty ? processes : [])
            let list = all.prefix(3).joined(separator: ", ") + (all.count > 3 ? " and \(all.count - 3) more" : "")
            let seconds = ChangeRequest.limit / 1_000_000_000
            refuse(
                call,
                Refusal(.timedOut, "The change did not take effect within \(seconds) seconds for \(list).")
            )
        }
        if let next { emit(.alarm(at: next)) }
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyNames

extension Coordinator {
    /// Carries out the next steps of a connection's transition.
    mutating func perform(_ actions: [Transition<RequestID>.Action], for id: ConnectionID) {
        for action in actions {
            switch action {
            case .hold:
                guard let subjects = directory[id]?.subjects else { break }
                hold(subjects, for: id, then: .transition)
            case .release:
                holding.releaseAll(for: id)
                followHolding()
            case .mark:
                // Sent along with the next call, so that little comes between the two.
                directory.change(id) { $0.isToBeMarked = true }
            case .tell(let state):
                guard let observer = directory[id] else { break }
                window.enqueue(.state(id), state, of: owner(of: observer))
                pumpWindow()
            case .awaitHeldBack: emit(.awaitHeldBack(id))
            case .deliver: deliverPending(to: id)
            case .forgetPending: _ = takePending(of: id)
            case .announce(let old, let new): announce(id, from: old, to: new)
            case .answer(let waiting, let outcome):
                let failure: String? = if case .failed(let text) = outcome { text } else { nil }
                for request in waiting { reached(request, id, failure) }
            }
        }
    }

    /// Changes the transition of a connection, and carries out its next steps.
    mutating func step(
        _ id: ConnectionID,
        _ event: (inout Transition<RequestID>) -> [Transition<RequestID>.Action]
    ) {
        guard let actions = directory.change(id, { event(&$0.transition) }) else { return }
        perform(actions, for: id)
    }

    /// The same for external events: a parked connection has nothing pending.
    mutating func advance(
        _ id: ConnectionID,
        _ event: (inout Transition<RequestID>) -> [Transition<RequestID>.Action]
    ) {
        guard let observer = directory[id], !observer.isParked else { return }
        step(id, event)
        guard directory[id]?.transition.isSettled == true else { return }
        freezeIfSuspended(observer.process)
        updateLook(at: observer.process)
    }

    // MARK: - State calls

    /// Informs waiting connections of their states, as many as the bus allows at once.
    mutating func pumpWindow() {
        while let (call, state) = window.next(now: now.nanoseconds) {
            guard case .state(let id) = call, let observer = directory[id], !observer.isParked else {
                window.hasAnswered(call)
                continue
            }
            directory.change(id) { $0.isToBeMarked = false }
            emit(.tell(id, state, additions: observer.additions, marks: observer.isToBeMarked))
        }
        // Pending requests have an alarm of their own.
        if let deadline = window.deadline, requests.isEmpty { emit(.alarm(at: deadline)) }
    }

    /// Who loses a part of the window as long as this observer does not reply.
    func owner(of observer: Observer) -> Owner {
        Owner(observer.process, agentUser: configuration.user)
    }

    mutating func observerReplied(_ id: ConnectionID, _ reply: Event.Reply) {
        window.hasAnswered(.state(id))
        defer { pumpWindow() }
        switch reply {
        case .done(let dropped, let isHoldingBack):
            // It has read what was sent to it before.
            directory.change(id) { $0.unconfirmed = [] }
            if let dropped { directory.change(id) { $0.reportedDropped = dropped } }
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
        let now = self.now
        directory.change(id) { $0.since = now.wallClock }
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

    /// Nobody waits any longer for a process to be frozen.
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

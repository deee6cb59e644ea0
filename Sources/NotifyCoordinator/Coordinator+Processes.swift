// SPDX-License-Identifier: Apache-2.0

import NotifyNames

// Processes that stand still: those that the agent stops, and those that others have stopped.
extension Coordinator {
    // MARK: - Freezing

    /// Whether nothing is wished for a process but that it is suspended.
    func mayStandStill(_ id: ProcessID) -> Bool {
        directory.connections(of: id).allSatisfy { directory[$0]?.decision.state == .suspended }
    }

    /// Stops a process that somebody wants to stand still, if all its connections are suspended: the last step of that
    /// change. What is decided now counts, not what was decided when the change began.
    mutating func freezeIfSuspended(_ id: ProcessID) {
        guard let process = directory[process: id], process.freezing.isWaiting, mayStandStill(id) else { return }
        let isSuspended = process.connections.allSatisfy { connection in
            guard let observer = directory[connection] else { return true }
            // What it has added is held first.
            return observer.isParked
                || observer.transition.isSettled && observer.state == .suspended && observer.holdWaiters.isEmpty
        }
        guard isSuspended, !process.connections.isEmpty else { return }
        stepFreezing(id) { $0.connectionsAreSuspended() }
    }

    mutating func processFroze(_ id: ProcessID, _ outcome: Event.FreezeOutcome) {
        let failure: String? =
            switch outcome {
            case .frozen: nil
            case .denied: "Process \(id) can't be frozen: it runs with the rights of another user."
            case .failed(let reason): "Process \(id) can't be frozen: \(reason)."
            }
        stepFreezing(id) { $0.froze(failure) }
        updateLook(at: id)
    }

    /// Lets a process go on, and lets nobody stop it on behalf of an earlier wish.
    mutating func thaw(_ id: ProcessID) {
        for same in directory.same(as: id) { stepFreezing(same) { $0.mustRun() } }
    }

    /// Nobody else would know that these processes are to run again.
    mutating func thawEverything() {
        for id in directory.processes.keys.sorted() { thaw(id) }
    }

    private mutating func stepFreezing(_ id: ProcessID, _ event: (inout Freezing) -> [Freezing.Action]) {
        guard var process = directory[process: id] else { return }
        let actions = event(&process.freezing)
        directory[process: id]?.freezing = process.freezing
        for action in actions {
            switch action {
            case .freeze(let user): emit(.freeze(id, onBehalfOf: user))
            case .thaw: emit(.thaw(id))
            case .settle(let failure): settleRequests(waitingFor: id, failure: failure)
            }
        }
    }

    // MARK: - Parking

    /// A process stands still, and nobody has asked the agent for it. Its connections are parked before the bus drowns.
    mutating func processStopped(_ id: ProcessID) {
        guard let process = directory[process: id], !process.freezing.isStopped else { return }
        directory[process: id]?.isStopped = true
        sources.note(.stillness(process: id.pid, isStill: true), from: Coordinator.freezerSource)
        for connection in process.connections.sorted() {
            guard let observer = directory[connection], observer.mayBeQueuedFor, observer.hasSocket else { continue }
            directory.change(connection) { observer in
                observer.parking = .draining
                observer.stateAfterParking = observer.transition.wish
            }
            hold(observer.subjects, for: connection, then: .parking)
        }
    }

    /// The source that says which processes stand still.
    package static let freezerSource = "freezer"

    /// A connection's names are taken over: what was queued for it until now is read.
    mutating func namesAreHeldForParking(_ id: ConnectionID) {
        guard let observer = directory[id], case .draining = observer.parking, observer.hasSocket else { return }
        // From here on posts set bits; those that came before stand in the stream before the mark.
        step(id) { $0.park(returningTo: observer.stateAfterParking) }
        guard let state = directory[id]?.state else { return }
        directory.change(id) { observer in
            observer.transition = Transition(state, isHolding: state == .suspended)
            observer.hasSocket = false
        }
        if state == .background {
            releaseHeld(of: id)
        } else {
            // It may stand in the stream, which nobody reads for that.
            for name in takeDelivered(to: id) { _ = keep(name, for: id) }
        }
        emit(.drain(id))
    }

    /// Who gets what is found in the stream of a connection; nil if nobody is left.
    package func receiver(ofStream id: ConnectionID) -> ConnectionID? {
        let receiver = successors[id] ?? id
        return directory[receiver] == nil ? nil : receiver
    }

    /// The stream of a parked connection has been read, and its socket is shut down.
    mutating func streamIsRead(_ id: ConnectionID) {
        if successors.removeValue(forKey: id) == nil { directory.change(id) { $0.parking = .parked } }
    }

    mutating func processContinued(_ id: ProcessID) {
        directory[process: id]?.isStopped = false
        sources.note(.stillness(process: id.pid, isStill: false), from: Coordinator.freezerSource)
    }

    // MARK: - Looking

    /// Has the process looked at as long as the bus may queue posts for it.
    mutating func updateLook(at id: ProcessID) {
        guard let process = directory[process: id], process.facts.isWatched else { return }
        let mustLook = !process.freezing.isStopped && process.queued > 0
        emit(.look(id, mustLook))
        if !mustLook { directory[process: id]?.isStopped = false }
    }
}

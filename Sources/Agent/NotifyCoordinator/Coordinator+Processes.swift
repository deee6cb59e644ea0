// SPDX-License-Identifier: Apache-2.0

import NotifyNames

// Stopped processes: those that the agent stops, and those stopped from outside.
extension Coordinator {
    // MARK: - Freezing

    /// Whether the only requests for a process are to suspend it.
    func mayStandStill(_ id: ProcessID) -> Bool {
        directory[process: id]?.connections.allSatisfy { directory[$0]?.decision.state == .suspended } ?? true
    }

    /// Stops a process that is to be frozen, if all its connections are suspended: the last step of that change. If it
    /// is frozen already, a repeated request for it is answered. The current decisions count, not those made when the
    /// change began.
    mutating func freezeIfSuspended(_ id: ProcessID) {
        // With it its program, which may nap.
        if !naps.isEmpty { mustReviewNaps = true }
        guard let process = directory[process: id], process.freezing.wish != nil, mayStandStill(id) else { return }
        let observers = process.connections.compactMap { directory[$0] }
        guard !process.connections.isEmpty, observers.allSatisfy(isSuspended) else { return }
        stepFreezing(id) { $0.connectionsAreSuspended() }
    }

    /// Whether a connection is suspended, with nothing under way: the names that it has added are subscribed, too.
    func isSuspended(_ observer: ObservingConnection) -> Bool {
        observer.isParked || observer.isLeftSuspended
            || observer.transition.isSettled && observer.state == .suspended && observer.proxyWaiters.isEmpty
    }

    mutating func processFroze(_ id: ProcessID, _ outcome: Event.FreezeOutcome) {
        let failure: String? =
            switch outcome {
            case .frozen: nil
            case .denied: "Process \(id) can't be frozen: it runs with the rights of another user."
            case .failed(let reason): "Process \(id) can't be frozen: \(reason)."
            }
        stepFreezing(id) { $0.froze(failure) }
        for connection in directory.connections(of: id) {
            guard let names = directory[connection]?.subjects.names else { continue }
            if failure == nil {
                noLongerKeepsStates(connection, of: names)
            } else {
                keepStates(of: names, by: connection)
            }
        }
        updateLook(at: id)
    }

    /// Lets a process continue, and cancels earlier requests to stop it.
    mutating func thaw(_ id: ProcessID) {
        for same in directory.same(as: id) { stepFreezing(same) { $0.mustRun() } }
    }

    /// Lets a process whose new connection has registered continue until that knows its state.
    mutating func letRun(_ id: ProcessID) {
        for same in directory.same(as: id) { stepFreezing(same) { $0.connectionHasCome() } }
        if !naps.isEmpty { endNap(of: id) }
    }

    /// No other program would know that these processes must continue.
    mutating func thawEverything(except kept: Set<ProcessID>) {
        for id in directory.processes.keys.sorted() where !kept.contains(id) { thaw(id) }
    }

    private mutating func stepFreezing(_ id: ProcessID, _ event: (inout Freezing) -> [Freezing.Effect]) {
        guard var process = directory[process: id] else { return }
        let effects = event(&process.freezing)
        directory[process: id]?.freezing = process.freezing
        for effect in effects {
            switch effect {
            case .freeze(let user): emit(.freeze(id, onBehalfOf: user))
            case .thaw: emit(.thaw(id))
            case .settle(let failure): settleRequests(waitingFor: id, failure: failure)
            }
        }
    }

    // MARK: - Parking

    /// A process was stopped from outside. Its connections are parked before the bus overflows.
    mutating func processStopped(_ id: ProcessID) {
        guard let process = directory[process: id], !process.freezing.isStopped else { return }
        sources.note(.stillness(process: id.pid, isStill: true), from: Coordinator.freezerSource)
        for connection in process.connections.sorted() {
            guard let observer = directory[connection], observer.mayBeQueuedFor, observer.hasSocket else { continue }
            directory.change(connection) { observer in
                observer.parking = .draining
                observer.stateAfterParking = observer.transition.wish
            }
            noLongerKeepsStates(connection, of: observer.subjects.names)
            // By then the additions that the bus has read have arrived.
            subscribe(observer.subjects, for: connection, then: .parking, synchronizes: true)
        }
    }

    /// The source that reports which processes are stopped.
    package static let freezerSource = "freezer"

    /// A connection's names are subscribed: now what was queued for it is read.
    mutating func namesAreSubscribedForParking(_ id: ConnectionID) {
        guard let observer = directory[id], case .draining = observer.parking, observer.hasSocket else { return }
        // From here on posts set bits; earlier ones are in the stream before the mark.
        perform(directory[id]?.transition.park(returningTo: observer.stateAfterParking), for: id)
        guard let state = directory[id]?.state else { return }
        directory.change(id) { observer in
            observer.transition = Transition(state, isProxied: state == .suspended)
            observer.hasSocket = false
        }
        if state == .background {
            endProxy(of: id)
        } else {
            // The answer may be in the stream, which is not read for it.
            for name in takeDelivered(to: id) { _ = keep(name, for: id) }
        }
        emit(.drain(id))
    }

    /// The recipient of what is found in the stream of a connection; nil if there is none any more.
    package func receiver(ofStream id: ConnectionID) -> ConnectionID? {
        let receiver = heirs.heir(of: id) ?? id
        return directory[receiver] == nil ? nil : receiver
    }

    /// The stream of a parked connection has been read, and its socket is shut down.
    mutating func streamIsRead(_ id: ConnectionID) {
        guard let heir = heirs.end(id) else {
            directory[id]?.parking = .parked
            connectionIsSilent(id)
            return
        }
        // The names found in it come next, and are delivered with the pending ones.
        if directory[heir]?.transition.isHandingBack == true { emit(.awaitHeldBack(heir)) }
    }

    mutating func processContinued(_ id: ProcessID) {
        sources.note(.stillness(process: id.pid, isStill: false), from: Coordinator.freezerSource)
    }

    // MARK: - Looking

    /// Watches the process while the bus may queue posts for it.
    mutating func updateLook(at id: ProcessID) {
        guard let process = directory[process: id], process.facts.isWatched else { return }
        emit(.look(id, !process.freezing.isStopped && process.queued > 0))
    }
}

/// Whether a process is frozen on request: decides what to do next, without doing it.
///
/// Freezing is the last step of the change that suspends its connections, and thawing is the first step of the change
/// that resumes them. A request that was withdrawn before it took effect freezes nothing.
struct Freezing: Hashable {
    enum Step: Equatable {
        case running
        case freezing
        case frozen
        case thawing
    }

    enum Effect: Equatable {
        /// Ends in `froze`.
        case freeze(onBehalfOf: UInt32)
        /// Ends in `thawed`.
        case thaw
        /// Those waiting for the process to be frozen wait no longer: it is, that is not wanted any more, or this
        /// prevented it.
        case settle(failure: String?)
    }

    private(set) var step: Step
    /// The user who wants the process to be frozen.
    private(set) var wish: UInt32?
    /// Whether it must run once more before it is frozen: it was told of a state since it was being stopped.
    private var mustContinue = false

    /// - Parameter user: on whose behalf it is frozen already; nil if it is not.
    init(frozenFor user: UInt32? = nil) {
        step = user == nil ? .running : .frozen
        wish = user
    }

    /// Whether it is frozen, or may be in a moment, because the agent has stopped it.
    var isStopped: Bool { step != .running }

    /// The process is to be frozen once all its connections are suspended.
    mutating func want(by user: UInt32) {
        wish = user
    }

    /// All connections of the process are suspended, and nothing else is requested for any of them.
    mutating func connectionsAreSuspended() -> [Effect] {
        guard let wish else { return [] }
        switch step {
        case .running:
            step = .freezing
            return [.freeze(onBehalfOf: wish)]
        // `froze` and `thawed` decide on it again.
        case .freezing, .thawing: return []
        case .frozen: return [.settle(failure: nil)]
        }
    }

    /// A connection of the process is to hear or to drop posts, so the process must run.
    mutating func mustRun() -> [Effect] {
        let isOvertaken = wish != nil
        wish = nil
        let settled: [Effect] = isOvertaken ? [.settle(failure: nil)] : []
        if step == .freezing { mustContinue = true }
        guard step == .frozen else { return settled }
        step = .thawing
        return settled + [.thaw]
    }

    /// A connection that the process had begun before it was frozen has registered: it must learn its state, or the bus
    /// would queue posts for it. After that the process is frozen again.
    mutating func connectionHasCome() -> [Effect] {
        switch step {
        case .running, .thawing: return []
        case .freezing:
            mustContinue = true
            return []
        case .frozen:
            step = .thawing
            return [.thaw]
        }
    }

    /// - Parameter failure: why the process was not frozen.
    mutating func froze(_ failure: String?) -> [Effect] {
        guard step == .freezing else {
            // The request is from before the process was forgotten and registered again. Nobody wants it any more.
            guard failure == nil, step == .running else { return [] }
            step = .thawing
            return [.thaw]
        }
        defer { mustContinue = false }
        if let failure {
            step = .running
            guard wish != nil else { return [] }
            wish = nil
            return [.settle(failure: failure)]
        }
        step = .frozen
        // In the meantime it may have been wanted to run, if only for a moment.
        if wish == nil || mustContinue {
            step = .thawing
            return [.thaw]
        }
        return [.settle(failure: nil)]
    }

    /// - Parameter failure: why it could not be thawed. Then it counts as frozen, and is retried with the next request.
    mutating func thawed(_ failure: String?) {
        guard step == .thawing else { return }
        step = failure == nil ? .running : .frozen
    }
}

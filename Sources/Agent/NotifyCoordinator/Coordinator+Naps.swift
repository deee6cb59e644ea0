// SPDX-License-Identifier: Apache-2.0

import NotifyNames

// Programs that nap while the user is not looking at them.
extension Coordinator {
    // MARK: - What happens

    /// Sources have reported something, maybe about the focus.
    mutating func focusMayHaveMoved() {
        let own = sources.focused?.filter { process in
            !process.isOfDesktop && !configuration.exemptApplications.contains(process.application)
                && !configuration.untouchables.contains(process.pid)
                && (configuration.user == nil || process.user == configuration.user)
        }
        perform(naps.focusHasMoved(own, now: now.nanoseconds))
    }

    /// - Parameter state: bit 16 says that the machine is on external power; nil if unknown.
    mutating func powerHasChanged(_ state: UInt64?) {
        perform(naps.powerHasChanged(isOnBattery: state.map { $0 & 1 << 16 == 0 }, now: now.nanoseconds))
    }

    mutating func setNaps(_ call: CallID, _ caller: Caller, _ isOn: Bool) throws(Refusal) {
        guard !naps.isEmpty else { throw Refusal(.failed, "Nothing naps: there is no nap.conf, or nothing in it.") }
        guard configuration.user.map(caller.mayChange) ?? true else {
            throw Refusal(.accessDenied, "Only the user of the session and root can turn naps off and on.")
        }
        perform(naps.turn(off: !isOn, now: now.nanoseconds))
        answer(call, .done)
    }

    /// - Returns: whether the program of a process is about to be stopped. Then it has said that it is ready for that,
    ///   and its report ends with the nap.
    mutating func isReadyForNap(_ id: ProcessID) -> Bool {
        guard !naps.isEmpty, let program = program(of: id), naps.isFalling(program) else { return false }
        naps.isReady(id, of: program)
        mustReviewNaps = true
        return true
    }

    // MARK: - What follows

    mutating func perform(_ effects: [Naps.Effect]) {
        var changed: [ConnectionID] = []
        for effect in effects {
            switch effect {
            case .decide(let program):
                changed += processes(of: program).flatMap(directory.connections(of:))
                mustReviewNaps = true
            case .freeze(let program, let processes): emit(.freezeProgram(program, processes))
            case .thaw(let program): emit(.thawProgram(program))
            case .follow(let question): emit(.followUses(question))
            case .alarm(let time): emit(.napAlarm(at: time))
            }
        }
        if !changed.isEmpty { reconsider(changed) }
    }

    private func program(of id: ProcessID) -> NapProgram? {
        directory[process: id].map { NapProgram(application: $0.application, id) }
    }

    private func processes(of program: NapProgram) -> [ProcessID] {
        directory.processes.keys.filter { self.program(of: $0) == program }.sorted()
    }

    /// Whether nothing but the nap has decided on a program's connections.
    private func mayStop(_ program: NapProgram) -> Bool {
        processes(of: program).flatMap(directory.connections(of:)).allSatisfy { id in
            directory[id].map { $0.decision.decider == Naps.decider } ?? true
        }
    }

    /// Decisions about these processes have changed: a process that is to hear or to drop posts runs before it is told
    /// so.
    mutating func endStops(of processes: [ProcessID]) {
        for program in Set(processes.compactMap { self.program(of: $0) }).sorted() where !mayStop(program) {
            perform(naps.mustRun(program))
        }
    }

    /// A process has something to do before it can be stopped again.
    mutating func endNap(of id: ProcessID) {
        if let program = program(of: id) { perform(naps.mustRun(program)) }
    }

    /// Has programs stopped that are suspended by now.
    mutating func reviewNaps() {
        mustReviewNaps = false
        for program in naps.falling {
            let processes = self.processes(of: program)
            let observers = processes.flatMap(directory.connections(of:)).compactMap { directory[$0] }
            guard mayStop(program), observers.allSatisfy(isSuspended) else {
                perform(naps.mustRun(program))
                continue
            }
            let followers = Set(observers.filter(\.followsDesktop).map(\.process))
            perform(naps.isSuspended(program, processes, followers: followers, now: now.nanoseconds))
        }
    }
}

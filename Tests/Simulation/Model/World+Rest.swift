// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

// Time passes, and in the end everything comes to rest and is checked.
extension World {
    var nextMoment: Int64? {
        var next = min(agent?.alarm ?? .max, agent?.napAlarm ?? .max)
        for observer in observers where !observer.hasEnded && !processes[observer.process].isStopped {
            next = min(next, observer.deadline ?? .max)
        }
        for poster in posters { next = min(next, poster.deadline ?? .max) }
        next = min(next, agent?.leavesAt ?? .max, agent?.heritageAgesAt ?? .max)
        if let agent, agent.isStuck(self) { next = min(next, clock) }
        return next == .max ? nil : next
    }

    func passTime() {
        guard let moment = nextMoment else { return }
        clock = max(clock, moment)
        for observer in observers where !observer.hasEnded && !processes[observer.process].isStopped {
            if let deadline = observer.deadline, deadline <= clock { observer.deadlineHasPassed(self) }
        }
        for poster in posters where poster.deadline.map({ $0 <= clock }) ?? false { poster.deadlineHasPassed(self) }
        if let agent, agent.isStuck(self) { agent.finishReading(self) }
        if let agent, let age = agent.heritageAgesAt, age <= clock { agent.heritageIsOld(self) }
        if let agent, let end = agent.leavesAt, end <= clock {
            agent.handOver(self)
            return forgetAgent()
        }
        if let agent, let alarm = agent.alarm, alarm <= clock { agent.alarmHasCome(self) }
        if let agent, let alarm = agent.napAlarm, alarm <= clock { agent.napTimeHasCome(self) }
    }

    // MARK: - Rest

    func rest(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var enabled: [Step] = []
        enabled.reserveCapacity(32)
        var left = 4_000
        for process in processes.indices { processes[process].isStoppedByOthers = false }
        startBus()
        while left > 0, oracle.failure == nil {
            left -= 1
            collect(&enabled)
            if !enabled.isEmpty {
                take(enabled[random.below(enabled.count)])
            } else if nextMoment != nil {
                checkBeforeTime()
                take(.time)
            } else {
                break
            }
        }
        if left == 0 { oracle.fail("it never comes to rest") }
        if oracle.failure == nil { check() }
    }

    /// Nothing is under way, and no process is stopped: if only the time brings an answer, the agent has forgotten a
    /// caller.
    func checkBeforeTime() {
        guard let request = requests.first else { return }
        oracle.fail("request \(request.serial) is not answered before it has waited too long")
    }

    func check() {
        if !requests.isEmpty { oracle.fail("request \(requests[0].serial) is not answered") }
        for poster in posters { poster.check(self) }
        let living = observers.filter { !$0.hasEnded && !standsStill($0) }
        oracle.rest(living, hasAgent: agent != nil)
        for observer in living {
            observer.callbacks.check(self)
            guard let connection = observer.connection else {
                oracle.fail("observer \(observer.number) stays away")
                continue
            }
            let (wanted, rules) = (observer.wantedRules, bus[connection].rules)
            for subject in 0..<Subject.ruleCount {
                let expected = wanted.contains(subject) ? 1 : 0
                if rules[subject] != expected {
                    oracle.fail(
                        "observer \(observer.number), in \(observer.state), has \(rules[subject])"
                            + " rules of \(Subject.ruleTitle(subject)) on the bus"
                    )
                }
            }
            if agent == nil, observer.state != .foreground, !processes[observer.process].isStopped {
                oracle.fail("observer \(observer.number) stays \(observer.state) without an agent")
            }
        }
        checkNaps(agent)
        checkAgent(living)
    }

    /// Whether the agent has stopped an observer's process, which then cannot know its state.
    func standsStill(_ observer: SimulatedObserver) -> Bool {
        processes[observer.process].isFrozen || processes[observer.process].isNapping
    }

    func checkAgent(_ living: [SimulatedObserver]) {
        guard let agent else { return }
        let totals = agent.totals
        var held = Set<Int>()
        for observer in living {
            guard let connection = observer.connection else { continue }
            guard let id = agent.id(of: bus[connection].name), let entry = agent.entry(of: id) else {
                oracle.fail("the agent does not know observer \(observer.number)")
                continue
            }
            if entry.state != observer.state {
                oracle.fail(
                    "the agent believes observer \(observer.number) to be in \(entry.state); it is in "
                        + "\(observer.state)"
                )
            }
            if !agent.isAsDecided(id) { oracle.fail("observer \(observer.number) is not as decided") }
            let nap = napState(of: observer, entry.decider == Naps.decider)
            let wanted = nap ?? says(desktop, of: observer)
            if (entry.decider == Naps.decider) != (nap != nil), entry.decider.isDesktop {
                oracle.fail("observer \(observer.number) \(entry.decider == Naps.decider ? "naps" : "does not nap")")
            }
            if case .source = entry.decider, wanted != entry.state {
                oracle.fail("the desktop has put observer \(observer.number) into the \(entry.state)")
            }
            if entry.decider == .rule, wanted != nil {
                oracle.fail("observer \(observer.number) follows the desktop, and is in the \(entry.state)")
            }
            if isExempt(observer), entry.decider != .program, entry.state != .foreground {
                oracle.fail("observer \(observer.number) is exempt, and is in the \(entry.state)")
            }
            if entry.isParked { oracle.fail("observer \(observer.number) runs and is parked") }
            if entry.pending > entry.subjects.names.count, entry.subjects.prefixes.isEmpty {
                oracle.fail("observer \(observer.number) has more names pending than it observes")
            }
            if entry.state == .suspended { held.formUnion(observer.subjects) }
        }
        for observer in observers where !observer.hasEnded && standsStill(observer) {
            // Where a stream is still being read, it would wait with handing over. One without connections then continues.
            let isKnown = !agent.connections(of: SimulatedAgent.process(observer.process)).isEmpty
            if processes[observer.process].isFrozen, isKnown, agent.isAtRest, !agent.knowsFrozen(observer.process) {
                oracle.fail("process \(observer.process) is frozen, and the agent does not know")
            }
            for id in agent.connections(of: SimulatedAgent.process(observer.process)) {
                guard let state = agent.entry(of: id)?.state, state != .suspended else { continue }
                oracle.fail("process \(observer.process) stands still in the \(state)")
            }
        }
        checkNameStates(agent, living)
        // How much the agent keeps for a stopped process depends on whether it was parked.
        guard living.count == observers.count(where: { !$0.hasEnded }) else { return }
        if totals.observers != living.count {
            oracle.fail("the agent knows \(totals.observers) connections, and there are \(living.count)")
        }
        if totals.held != held.count {
            oracle.fail("the agent holds \(totals.held) names, and \(held.count) are to be held")
        }
        for subject in agent.surplusRules(held, setting) {
            oracle.fail("the agent has a rule of \(Subject.ruleTitle(subject)) on the bus, which nobody needs")
        }
    }
}

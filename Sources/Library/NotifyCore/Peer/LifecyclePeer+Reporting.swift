// SPDX-License-Identifier: Apache-2.0

// Reports to the agent, or to the relay, of what is observed.
extension LifecyclePeer {
    struct Untold {
        /// What the relay has yet to be told, and how often that began again.
        var reports = RelayReports()
        private(set) var beginnings = 0
        /// What was added since the agent was last told of some, if it has yet to answer that: an agent refuses a connection
        /// that has too many calls pending, and with wide rules, or while the program is suspended, nothing else slows down
        /// one that adds thousands in a row.
        var additions = RelayReports.Batch()
        var isAnswerDue = false
        /// Names that were heard before, and that the relay has yet to hear again.
        var unheard: Set<NotifyName> = []

        /// A registration reports everything.
        mutating func begin() { self = Untold(beginnings: beginnings + 1) }
    }

    func namesHaveChanged(names: [String], prefixes: [String], added: Bool) {
        if !added { nameStates.forget(names) }
        let isAnswerDue = untold.isAnswerDue && receiver.reach.hearsEverything && receiver.lifecycle.isOpen
        if added, isAnswerDue && prefixes.isEmpty || receiver.lifecycle.awaitsAddition {
            return untold.additions.add(RelayReports.Batch(names: names, prefixes: prefixes))
        }
        tellUntold()
        let statement: ObserverLifecycle.Statement =
            added ? .observes(names: names, prefixes: prefixes) : .observesNoMore(names: names, prefixes: prefixes)
        run(.says(statement))
    }

    /// Reports what was added meanwhile, which the agent must know before anything else.
    func tellUntold() {
        while !untold.additions.isEmpty {
            let batch = untold.additions.take(RelayReports.limit)
            run(.says(.observes(names: Array(batch.names), prefixes: Array(batch.prefixes))))
        }
    }

    /// Reports everything to a relay that has accepted a registration without names.
    func tellEverything() {
        untold.unheard = Set(receiver.registry.namesHeard)
        let (names, prefixes) = receiver.registry.subjects
        run(.says(.observes(names: names, prefixes: prefixes)))
    }

    /// The relay hears these from now on. Those that it heard before may have been posted in between: each is delivered
    /// once.
    private func noteHeard(_ names: [String]) {
        if untold.unheard.isEmpty { return }
        let missed = names.compactMap { try? NotifyName($0) }.filter { untold.unheard.remove($0) != nil }
        if receiver.lifecycle.state != .background { receiver.lifecycle.keep(missed) }
    }

    func tell(
        _ agent: String,
        _ statement: ObserverLifecycle.Statement,
        asking number: Int?
    ) {
        switch statement {
        case .observes(let names, let prefixes) where service == .relay:
            untold.reports.add(RelayReports.Batch(names: names, prefixes: prefixes))
            report(to: agent)
        case .observesNoMore(let names, let prefixes) where service == .relay:
            untold.reports.remove(RelayReports.Batch(names: names, prefixes: prefixes))
            report(to: agent)
        case .observes(let names, let prefixes):
            let message = AgentInterface.AddNames(names: names, prefixes: prefixes)
            // An agent has only so many calls of a connection pending, so one answer at most is due.
            if number == nil, untold.isAnswerDue || !receiver.reach.hearsEverything {
                return link.tell(message, to: agent)
            }
            if number == nil { untold.isAnswerDue = true }
            link.call(message, to: agent, of: service) { [self] answer in
                if case .failure(let fault) = answer, fault.isOfLostConnection { return }
                if let number {
                    // Names that were added meanwhile are confirmed with it: no topic is confirmed before the agent
                    // knows of all.
                    tellUntold()
                    return run(.additionAnswered(number))
                }
                untold.isAnswerDue = false
                tellUntold()
            }
        case .observesNoMore(let names, let prefixes):
            link.tell(AgentInterface.RemoveNames(names: names, prefixes: prefixes), to: agent, of: service)
        case .followsDesktop(let follows):
            link.tell(AgentInterface.FollowDesktop(follows), to: agent, of: service)
        }
    }

    /// Reports to the relay what has changed, unless a call is under way.
    private func report(to agent: String) {
        guard let (removed, added) = untold.reports.next() else { return }
        let (count, names, prefixes) = (untold.beginnings, Array(added.names), Array(added.prefixes))
        let removal = AgentInterface.RemoveNames(names: Array(removed.names), prefixes: Array(removed.prefixes))
        if added.isEmpty {
            return link.call(removal, to: agent, of: service) { [self] answer in
                guard count == untold.beginnings else { return }
                _ = untold.reports.wereAnswered(added, isRefusal: false)
                if case .failure(let fault) = answer, fault.saysGone { return }
                report(to: agent)
            }
        }
        if !removed.isEmpty { link.tell(removal, to: agent, of: service) }
        let addition = AgentInterface.AddNames(names: names, prefixes: prefixes)
        link.call(addition, to: agent, of: service) { [self] answer in
            guard count == untold.beginnings else { return }
            let fault: BusFault? = if case .failure(let fault) = answer { fault } else { nil }
            // The next relay is told everything.
            let isGone = fault?.saysGone == true
            if untold.reports.wereAnswered(added, isRefusal: fault != nil && !isGone) {
                let current = untold.reports.current(of: added)
                receiver.relayAnswered(answer.map { _ in }, Array(current.names), Array(current.prefixes))
                if fault == nil { noteHeard(Array(current.names)) }
            }
            if !isGone { report(to: agent) }
        }
    }

    func synchronize(then completion: @escaping () -> Void) -> Bool {
        guard receiver.hearsByRelay, let agent = receiver.lifecycle.agent else { return false }
        link.call(RelayInterface.Synchronize(), to: agent, of: service) { _ in completion() }
        return true
    }
}

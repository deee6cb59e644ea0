// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyEvents
import NotifyNames

/// Carrying out what the coordinator has decided.
extension Agent {
    func perform(_ effect: Effect) {
        switch effect {
        case .answer(let call, let answer): face.answer(call, answer)
        case .refuse(let call, let refusal): face.refuse(call, refusal)
        case .tell(let id, let state, let additions, let marks): tell(id, state, additions, marks: marks)
        case .deliver(let id, let names):
            if coordinator.isRelayed(id) {
                deliverRelayed(names, to: id)
            } else if let name = coordinator.name(of: id) {
                face.deliver(names, to: name) { [self] in handle(.delivered(id)) }
            }
        case .tellDecider(let id, let decider):
            if let name = coordinator.name(of: id) {
                let message = AgentInterface.Decided(decider: decider.name)
                if coordinator.isRelayed(id) { relaying.emit(message, to: name) } else { link.emit(message, to: name) }
            }
        case .awaitHeldBack(let id):
            link.callBus("GetId", []) { [self] _ in handle(.nothingIsHeldBack(id)) }
        case .announce(let change):
            let metadata: Logger.Metadata = ["connection": "\(change.name)", "process": "\(change.process)"]
            logger.info("\(change.from) → \(change.to)", metadata: metadata)
            face.announce(change)
        case .announceFact(let source, let fact):
            logger.debug("\(fact.text)", metadata: ["source": "\(source)"])
            link.emit(AgentInterface.FactChanged(source: source, fact: fact.text))
        case .subscribe(let ticket, let names, let prefixes):
            subscribe(ticket, names, prefixes)
        case .unsubscribe(let ticket, let names, let prefixes):
            link.release(names: names, prefixes: prefixes)
            if let ticket { subscribe(ticket, [], []) }
        case .freeze(let process, let user): handle(.froze(process, processes.freeze(process, for: user)))
        case .thaw(let process): handle(.thawed(process, failure: processes.thaw(process)))
        case .look(let process, let mustLook):
            let isAnnounced = ends.isEmpty || !coordinator.connections(of: process).contains(where: ends.watches)
            processes.look(at: process, mustLook, isAnnounced: isAnnounced)
        case .drain(let id): drain(id)
        case .stopDraining(let id): sockets.stopDraining(id)
        case .begin(let id): begin(id)
        case .forget(let id, let name):
            logger.debug("gone", metadata: ["connection": "\(name)"])
            sockets.forget(id)
            ends.end(id, name)
            if relaying.forget(name) { alarms.set(.relaying, at: relaying.restTime) }
            launching?.hasLeft(id)
        case .present(let process): if let facts = coordinator.facts(of: process) { sources.present(facts) }
        case .forgetProcess(let process):
            launching?.forget(process)
            processes.forget(process)
            sources.forget(process)
        case .changesAreInForce(let number): changesAreInForce(number)
        case .observersCome: startSources()
        case .observersHaveGone: restIfNobodyObserves()
        case .interest(let name, let isWanted): handle(EventTable.Input.wanted(name, isWanted))
        case .giveMemoryBack:
            link.emptyCaches()
            Memory.giveBack()
        case .alarm(let time): alarms.set(.coordinator, at: time)
        }
    }

    private func tell(
        _ id: ConnectionID,
        _ state: LifecycleState,
        _ additions: UInt32,
        marks: Bool
    ) {
        guard let name = coordinator.name(of: id) else { return }
        if coordinator.isRelayed(id) { return relaying.tell(name, state) }
        if marks {
            // The reply is at the point in the stream of posts at which the bus has processed the question.
            link.callBus("GetId", []) { [self] _ in handle(.markIsReached(id)) }
        }
        let message = ObserverInterface.SetState(state: state, additions: additions)
        face.tell(name, message) { [self] reply in
            // Until what it has added is taken note of, it would only say so again.
            if case .namesAdded = reply,
                intake.follow(name, { [self] in handle(.told(id, .namesAdded)) })
            {
                return
            }
            handle(.told(id, reply))
        }
    }

    private func subscribe(
        _ ticket: Ticket,
        _ names: [NotifyName],
        _ prefixes: [NamePrefix]
    ) {
        if names.isEmpty, prefixes.isEmpty {
            link.callBus("GetId", []) { [self] _ in handle(.rulesAreSet(ticket, failure: nil)) }
        } else {
            link.hold(names: names, prefixes: prefixes) { [self] error in
                if let error { logger.error("\(error)") }
                handle(.rulesAreSet(ticket, failure: error?.description))
            }
        }
    }

    /// A connection observes: its end is noticed through its socket, or the bus is asked to report it.
    private func begin(_ id: ConnectionID) {
        guard let entry = coordinator.entry(of: id), let process = processes.number(of: entry.process) else { return }
        logger.debug(
            "registered",
            metadata: ["connection": "\(entry.name)", "process": "\(entry.process)", "state": "\(entry.state)"]
        )
        if sockets.begin(id, entry.name, of: process) { return }
        ends.begin(id, entry.name) { [self] in handle(.connectionEnded(id)) }
    }

    private func drain(_ id: ConnectionID) {
        guard let name = coordinator.name(of: id), let process = coordinator.process(of: id).flatMap({ processes[$0] })
        else { return }
        logger.notice("parking", metadata: ["connection": "\(name)", "process": "\(process.pid)"])
        // From here on posts set bits; earlier ones are in the stream before the mark.
        face.mark(name, id.number)
        if !sockets.drain(id, process, agent: uniqueName) { handle(.drained(id)) }
    }

    /// The stream of a parked connection has been read.
    ///
    /// Until the bus has said who sent the names that have an owner, the stream counts as being read: whoever takes the place
    /// of the connection meanwhile gets them.
    ///
    /// - Parameters:
    ///   - senders: those that the bus has yet to be asked for.
    ///   - verified: names of those for whom it has answered.
    func streamIsRead(
        _ id: ConnectionID,
        _ outcome: ParkedStream.Outcome,
        _ senders: ArraySlice<String>,
        _ verified: [NotifyName] = []
    ) {
        if let sender = senders.first {
            return link.findUser(of: sender) { [self] user in
                let names = outcome.owned[sender] ?? []
                let believed = (try? user.get()).map { user in names.filter { $0.isOpen(to: user) } } ?? []
                streamIsRead(id, outcome, senders.dropFirst(), verified + believed)
            }
        }
        let receiver = coordinator.receiver(ofStream: id)
        handle(.drained(id))
        guard let receiver, let subjects = coordinator.subjects(of: receiver) else { return }
        logger.notice(
            "parked",
            metadata: [
                "connection": "\(coordinator.name(of: receiver) ?? "")", "messages": "\(outcome.messages)",
                "mark": "\(outcome.hasMark ? "seen" : "missed")",
            ]
        )
        handle(.found(receiver, outcome.names(amongst: subjects) + verified))
    }
}

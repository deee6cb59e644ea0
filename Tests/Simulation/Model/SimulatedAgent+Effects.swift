// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

// Carries out what the coordinator asks for.
extension SimulatedAgent {
    func feed(_ event: Event, _ world: World) {
        guard isAlive else { return }
        world.note("  agent: \(event)")
        let effects = coordinator.handle(event, at: Timestamp(nanoseconds: world.clock))
        if world.setting.pendingLimit != nil { checkRoom(event, world) }
        for effect in effects where isAlive { perform(effect, world) }
    }

    /// Only what is lost for lack of room is counted.
    func checkRoom(_ event: Event, _ world: World) {
        var waiting = 0
        for observer in world.observers {
            guard let connection = observer.connection, let id = id(of: world.bus[connection].name),
                let entry = self.entry(of: id)
            else { continue }
            waiting += entry.pending
            let before = dropped[id] ?? 0
            dropped[id] = entry.dropped
            if entry.dropped < before { world.oracle.fail("the agent forgets how many names it has lost") }
            guard entry.dropped > before else { continue }
            switch event {
            case .inherit: break
            case .posted(let name): world.oracle.overflowed(observer.number, [name])
            case .found(_, let names): world.oracle.overflowed(observer.number, names)
            default: world.oracle.overflowed(observer.number, Subject.names)
            }
        }
        if waiting > world.setting.pendingLimit ?? .max { world.oracle.fail("\(waiting) names wait for one user") }
    }

    /// The state of a name, as anybody would be told.
    func state(of name: Int) -> UInt64? {
        var copy = coordinator
        let effects = copy.handle(.getNameState(CallID(.max), Subject.names[name]), at: Timestamp(nanoseconds: 0))
        for case .answer(_, .value(let value)) in effects { return value }
        return nil
    }

    func ask(_ question: Question, _ message: ToBus, _ world: World) {
        lastSerial += 1
        questions.add(lastSerial, question)
        world.bus.write(message, connection)
    }

    func send(_ id: ConnectionID, _ message: PeerMessage, _ world: World) {
        guard let name = self.name(of: id) else { return }
        world.bus.write(.send(to: name, message), connection)
    }

    func perform(_ effect: Effect, _ world: World) {
        world.note("    → \(effect)")
        if world.breaks(effect, of: self) { return }
        switch effect {
        case .answer(let call, let answer): reply(call, answer, world)
        case .refuse(let call, let refusal):
            world.note("agent refuses: \(refusal.message)")
            guard let caller = calls.removeValue(forKey: call), caller.serial >= 0 else { return }
            world.bus.write(.send(to: caller.name, .refused(caller.serial)), connection)
        case .tell(let observer, let state, let additions, let marks):
            let id = observer.id
            if marks, world.mutation == .marksAtOnce { news.append(.markIsReached(id)) }
            if marks, world.mutation != .neverMarks, world.mutation != .marksAtOnce {
                ask(.mark(id), .ask(serial: lastSerial + 1), world)
            }
            ask(.state(id), .send(to: observer.name, .setState(lastSerial + 1, state, additions: additions)), world)
        case .deliver(let observer, let names): deliver(names, to: observer.id, world)
        case .tellDecider(let observer, let decider):
            if decider == Naps.decider { world.checkNap(of: self) }
            send(observer.id, .decided(decider.name), world)
        case .keepStates(let observer, let states):
            ask(.keeping(observer.id), .send(to: observer.name, .keepStates(lastSerial + 1, states)), world)
        case .awaitHeldBack(let id): ask(.heldBack(id), .ask(serial: lastSerial + 1), world)
        case .announce, .announceFact: break
        case .subscribe(let ticket, let names, let prefixes):
            let subjects = SimulatedAgent.subjects(names, prefixes)
            if world.mutation == .narrowsFirst, subjects.contains(Subject.everything) {
                for subject in rules.indices where Subject.isPrefix(subject) && rules[subject] > 0 {
                    rules[subject] = 0
                    world.bus.write(.removeMatch(subject), connection)
                }
            }
            for subject in subjects {
                rules[subject] += 1
                if rules[subject] == 1 { world.bus.write(.addMatch(subject, serial: 0), connection) }
            }
            if subjects.isEmpty, world.mutation == .parksBehind {
                return feed(.rulesAreSet(ticket, failure: nil), world)
            }
            ask(.rules(ticket), .ask(serial: lastSerial + 1), world)
        case .unsubscribe(let ticket, let names, let prefixes):
            for subject in SimulatedAgent.subjects(names, prefixes) where rules[subject] > 0 {
                rules[subject] -= 1
                if rules[subject] == 0 { world.bus.write(.removeMatch(subject), connection) }
            }
            if let ticket { ask(.rules(ticket), .ask(serial: lastSerial + 1), world) }
        case .freeze(let process, _):
            world.processes[Int(process.pid) - 100].isFrozen = true
            news.append(.froze(process, .frozen))
        case .thaw(let process):
            world.processes[Int(process.pid) - 100].isFrozen = false
            news.append(.thawed(process, failure: nil))
        case .look(let process, let looks):
            if looks { looksAt.insert(Int(process.pid) - 100) } else { looksAt.remove(Int(process.pid) - 100) }
        case .drain(let id): drain(id, world)
        case .stopDraining(let id): drains.removeAll { $0.id == id }
        case .begin(let id):
            if let name = self.name(of: id) { known[id] = world.bus.index(of: name) }
            if known[id] == nil { news.append(.connectionEnded(id)) }
        case .forget(let id, _):
            guard let index = known.removeValue(forKey: id), !drains.contains(where: { $0.id == id }) else { return }
            // One that was inherited has no socket here, and its connection may have registered meanwhile.
            if !known.values.contains(index) { world.close(index) }
        case .forgetProcess, .present, .observersCome, .observersHaveGone, .giveMemoryBack: break
        // There is no relay here.
        case .watchEnd, .ignoreEnd: break
        case .isInherited: requestName(world)
        case .changesAreInForce(let number): if !isExpiring { world.desktopIsInForce(number, self) }
        case .interest: break
        case .freezeProgram, .thawProgram, .napAlarm, .followUses: performNap(effect, world)
        case .alarm(let time): alarm = time
        }
    }

    func deliver(_ names: [NotifyName], to id: ConnectionID, _ world: World) {
        guard let name = self.name(of: id) else { return }
        let texts = names.map(\.string)
        if names.isEmpty {
            send(id, .deliver(-1, texts), world)
        } else {
            ask(.delivery(id, names), .send(to: name, .deliver(lastSerial + 1, texts)), world)
            guard world.mutation == .confirmsDelivery else { return }
            _ = questions.take(lastSerial)
            feed(.delivered(id), world)
        }
    }

    static func subjects(_ names: [NotifyName], _ prefixes: [NamePrefix]) -> [Int] {
        names.compactMap { Subject.number(of: $0) } + prefixes.compactMap { Subject.number(of: $0) }
    }

    func reply(_ call: CallID, _ answer: Effect.Answer, _ world: World) {
        guard let caller = calls.removeValue(forKey: call), caller.serial >= 0 else { return }
        let message: PeerMessage
        if case .registered(let state, let pending, let isComplete) = answer {
            let welcome = AgentInterface.Register.Answer(
                state: state,
                pending: pending.map(\.string),
                isComplete: isComplete
            )
            message = .registered(caller.serial, welcome)
            if let index = world.bus.index(of: caller.name), case .observer(let observer) = world.bus[index].owner {
                world.oracle.isRegisteredAgain(observer)
            }
        } else if case .stamp(let stamp) = answer {
            message = .stamp(caller.serial, stamp)
        } else {
            message = .done(caller.serial)
            world.agentAnswers(caller.serial, to: caller.name)
        }
        world.bus.write(.send(to: caller.name, message), connection)
    }
}

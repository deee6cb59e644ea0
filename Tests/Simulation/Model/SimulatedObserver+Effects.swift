// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

// Carries out what the observer's half of the protocol asks for.
extension SimulatedObserver {
    func run(_ event: ObserverLifecycle.Event, _ world: World) {
        world.note("  observer \(number): \(event)")
        let effects = lifecycle.handle(event) {
            (0..<Subject.nameCount).filter { topics[$0] != nil }.map { Subject.names[$0] }
        }
        for effect in effects { perform(effect, world) }
    }

    func askBus(_ question: Question, _ world: World) {
        guard let connection else { return }
        lastSerial += 1
        questions.add(lastSerial, question)
        let message: ToBus =
            switch question {
            case .findOwner: .getOwner(serial: lastSerial)
            case .startAgent: .startAgent(serial: lastSerial)
            case .user(_, let name), .sender(let name): .getUser(of: name, serial: lastSerial)
            default: .ask(serial: lastSerial)
            }
        world.bus.write(message, connection)
    }

    func send(_ agent: String, _ message: PeerMessage, _ world: World) {
        guard let connection else { return }
        world.bus.write(.send(to: agent, message), connection)
    }

    /// What it has told the agent that it observes and the bus has not read yet: a bit for each subject.
    func unread(_ world: World) -> UInt8 {
        guard let connection else { return 0 }
        return world.bus[connection].outbox.waiting.reduce(0) { mask, message in
            guard case .send(_, .names(_, let added)) = message else { return mask }
            return mask | Subject.mask(of: Subject.numbers(added.names, added.prefixes))
        }
    }

    func findAgent(_ search: Int, _ owner: String?, _ world: World) {
        askBus(owner.map { .user(search: search, owner: $0) } ?? .findOwner(search: search), world)
    }

    func perform(_ effect: ObserverLifecycle.Effect, _ world: World) {
        world.note("    → \(effect)")
        if world.breaks(effect, of: self) { return }
        switch effect {
        case .watchAgent: if let connection { world.bus.write(.watchOwner, connection) }
        case .findAgent(let search, let owner): findAgent(search, owner, world)
        case .register(let agent, var registration):
            registration.names = Subject.names(of: subjects)
            if world.mutation != .forgetsPrefixes || busNumber == 0 {
                registration.prefixes = Subject.prefixes(of: subjects)
            }
            registration.followsDesktop =
                world.mutation == .locksEveryone || world.mutation != .forgetsFollowing && followsDesktop
            if world.mutation != .forgetsStates {
                registration.states = nameStates.sorted { $0.key < $1.key }.map { name, state in
                    let stamp = world.mutation == .insistsOnStates ? .max : state.stamp
                    return .init(name: Subject.texts[name], number: state.value, stamp: stamp)
                }
            }
            told = Subject.mask(of: subjects)
            lastSerial += 1
            questions.add(lastSerial, .register(agent: agent))
            send(agent, .register(lastSerial, registration), world)
        case .confirmRegistrations:
            // One that has ended since, and begun anew, has other rules.
            let held = heldTopics.filter { topics[$0.subject]?.number == $0.number }.map(\.subject)
            heldTopics = []
            activate(held, world)
        case .withdrawRules: withdrawRules(world)
        case .putRules:
            generation += 1
            heldTopics = []
            for subject in subjects { sendRule(subject, world) }
        case .askBarrier(let number): askBus(.barrier(number), world)
        case .publish(let state): world.note("observer \(number) is in \(state)")
        case .answer(let call): send(call.sender, .stateIsSet(Int(call.serial)), world)
        case .postpone(let call): send(call.sender, .namesAdded(Int(call.serial)), world)
        case .acknowledge(let call):
            if call.wantsReply { send(call.sender, .delivered(Int(call.serial)), world) }
        case .refuse(let call): if call.wantsReply { send(call.sender, .refused(Int(call.serial)), world) }
        case .tell(let agent, let statement, let number): tell(agent, statement, asking: number, world)
        case .ask(let agent, let request):
            guard let request = requests.removeValue(forKey: request) else { break }
            lastSerial += 1
            switch request {
            case .report(let state):
                questions.add(lastSerial, .report(state))
                send(agent, .report(lastSerial, state), world)
            case .nameState(let name, let value, let topic):
                questions.add(lastSerial, .nameState(name, value, agent: agent, topic: topic))
                send(agent, .setNameState(lastSerial, name: name, value: value), world)
            }
        case .fail(let request):
            switch requests.removeValue(forKey: request) {
            case .report(let state): world.oracle.reportAnswered(self, state, false)
            case .nameState(let name, _, _): world.nameStateIsAnswered(name)
            case nil: break
            }
        case .noteCutOff: break
        case .disconnect:
            guard let connection else { break }
            world.bus.disconnect(connection, readable: 0)
            world.closed(connection)
            lose(world)
        case .setDeadline(let milliseconds): deadline = milliseconds.map { world.clock + $0 * 1_000_000 }
        }
    }

    /// For a break of the protocol: does not ask the bus.
    func passBarrier(_ number: Int, _ world: World) {
        for _ in subjects { run(.ruleAnswered, world) }
        run(.barrierPassed(number), world)
    }

    func tell(_ agent: String, _ statement: ObserverLifecycle.Statement, asking number: Int?, _ world: World) {
        switch statement {
        case .observes(let names, let prefixes):
            told |= Subject.mask(of: Subject.numbers(names, prefixes))
            let message = AgentInterface.AddNames(names: names, prefixes: prefixes)
            guard let number else { return send(agent, .names(-1, message), world) }
            lastSerial += 1
            questions.add(lastSerial, .addition(number))
            send(agent, .names(lastSerial, message), world)
        case .observesNoMore(let names, let prefixes):
            told &= ~Subject.mask(of: Subject.numbers(names, prefixes))
            send(agent, .noNames(AgentInterface.RemoveNames(names: names, prefixes: prefixes)), world)
        case .followsDesktop(let follows):
            if world.mutation != .forgetsFollowing { send(agent, .follow(follows), world) }
        }
    }
}

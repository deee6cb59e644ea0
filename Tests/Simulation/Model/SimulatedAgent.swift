// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// An agent: the coordinator as it is, and a model of what is around it.
final class SimulatedAgent {
    private enum Question {
        case rules(Ticket)
        case mark(ConnectionID)
        case heldBack(ConnectionID)
        case whose(Int, String, AgentInterface.Register)
        case state(ConnectionID)
        case delivery(ConnectionID)
        case sender(String)
        /// Whose names were found in a stream.
        case poster(ConnectionID, [NotifyName])
    }

    private struct Sender {
        let name: String
        let serial: Int
        let isRegistration: Bool
    }

    /// A stream that is being read up to the mark.
    struct Drain {
        let id: ConnectionID
        let connection: Int
        let process: Int
        /// Posts, and of a torn one its name alone.
        var found: [Int] = []
        var torn: [Int] = []
    }

    let number: Int
    let connection: Int
    private(set) var coordinator: Coordinator
    private(set) var isAlive = true
    private(set) var alarm: Int64?
    private(set) var drains: [Drain] = []
    /// Who has posted the names in a stream that count only from their owner.
    private var owned: [ConnectionID: Set<String>] = [:]
    /// What others have found out for it: it comes beside the bus.
    var news = Queue<Event>()
    /// Processes that are looked at.
    private(set) var looksAt: Set<Int> = []
    private var known: [ConnectionID: Int] = [:]
    private var rules = [Int](repeating: 0, count: Subject.everything + 1)
    private var questions: [Int: Question] = [:]
    private(set) var senders = SenderCheck()
    private var calls: [CallID: Sender] = [:]
    private var lastSerial = 0
    private var lastCall: UInt64 = 0

    init(number: Int, connection: Int, prefixRules: Int) {
        self.number = number
        self.connection = connection
        var configuration = Coordinator.Configuration()
        configuration.untouchables = []
        configuration.prefixRules = prefixRules
        coordinator = Coordinator(configuration)
    }

    static func process(_ number: Int) -> ProcessID { ProcessID(pid: Int32(100 + number), startTime: 1, user: 0) }

    /// Whether the agent matches a name or a prefix itself.
    func hears(_ subject: Int) -> Bool { rules[subject] > 0 }
    func knows(_ index: Int) -> ConnectionID? { known.first { $0.value == index }?.key }

    // MARK: - What comes

    func step(_ world: World) {
        guard let message = world.bus[connection].inbox.popFirst() else { return }
        switch message {
        case .post(let post):
            let sender = world.posterName(of: post)
            switch senders.judge(post, world.posts[post], from: sender, world.mutation) {
            case .believed: feed(.posted(Subject.names[world.posts[post].name]), world)
            case .asks: ask(.sender(sender), .getUser(of: sender, serial: lastSerial + 1), world)
            case .held, .refused: break
            }
        case .replied(let serial, let text): answered(serial, isDone: true, text, world)
        case .failed(let serial): answered(serial, isDone: false, nil, world)
        case .nameLost: leave(world)
        case .ownerChanged: break
        case .peer(let sender, let message): handle(message, from: sender, world)
        }
    }

    func takeNews(_ world: World) {
        guard let event = news.popFirst() else { return }
        guard case .drained(let id) = event, case .found(id, let names) = news.popFirst() else {
            return feed(event, world)
        }
        // Whoever takes the place of the connection gets what was found.
        let receiver = coordinator.receiver(ofStream: id)
        feed(event, world)
        let senders = owned.removeValue(forKey: id) ?? []
        guard let receiver else { return }
        feed(.found(receiver, names), world)
        for sender in senders.sorted() {
            ask(.poster(receiver, [Subject.names[Subject.owned]]), .getUser(of: sender, serial: lastSerial + 1), world)
        }
    }

    func alarmHasCome(_ world: World) {
        alarm = nil
        feed(.alarm, world)
    }

    private func handle(_ message: PeerMessage, from sender: String, _ world: World) {
        switch message {
        case .register(let serial, let registration):
            ask(.whose(serial, sender, registration), .getUser(of: sender, serial: lastSerial + 1), world)
        case .names(let names):
            guard let added = try? Subjects(names: names.names, prefixes: names.prefixes) else { return }
            feed(.addNames(newCall(sender, -1), from: sender, added), world)
        case .noNames(let names):
            guard let removed = try? Subjects(names: names.names, prefixes: names.prefixes) else { return }
            feed(.removeNames(newCall(sender, -1), from: sender, removed), world)
        case .report(let serial, let state): feed(.report(newCall(sender, serial), from: sender, state), world)
        case .change(let serial, let target, let state, let freezes):
            let call = newCall(sender, serial)
            feed(
                .setState(call, by: NotifyCoordinator.Caller(user: 0), target, state, freezes: freezes, strangers: []),
                world
            )
        case .release(let serial, let target):
            feed(.release(newCall(sender, serial), by: NotifyCoordinator.Caller(user: 0), target), world)
        case .stateIsSet(let serial), .delivered(let serial): answered(serial, isDone: true, nil, world)
        case .refused(let serial):
            if case .state(let id) = questions[serial] {
                questions[serial] = nil
                feed(.told(id, .failed("no")), world)
            } else {
                answered(serial, isDone: false, nil, world)
            }
        default: break
        }
    }

    private func answered(_ serial: Int, isDone: Bool, _ text: String?, _ world: World) {
        guard let question = questions.removeValue(forKey: serial) else { return }
        switch question {
        case .rules(let ticket): feed(.rulesAreSet(ticket, failure: isDone ? nil : "no"), world)
        case .mark(let id): feed(.markIsReached(id), world)
        case .heldBack(let id): feed(.nothingIsHeldBack(id), world)
        case .whose(let serial, let sender, let registration):
            if isDone { register(serial, sender, registration, world) }
        case .delivery(let id): feed(.delivered(id), world)
        case .sender(let sender):
            senders.learn(user: text.flatMap { UInt32($0) }, of: sender)
            while let post = senders.next() { feed(.posted(Subject.names[world.posts[post].name]), world) }
        case .poster(let receiver, let names):
            let user = text.flatMap { UInt32($0) }
            feed(.found(receiver, names.filter { name in user.map { name.isOpen(to: $0) } ?? false }), world)
        case .state(let id):
            let holdsBack = senders.isHolding && world.mutation != .handsBackEarly
            feed(.told(id, isDone ? .done(dropped: 0, isHoldingBack: holdsBack) : .gone), world)
        }
    }

    private func register(_ serial: Int, _ sender: String, _ registration: AgentInterface.Register, _ world: World) {
        guard let index = world.bus.index(of: sender), case .observer(let observer) = world.bus[index].owner,
            let subjects = try? Subjects(names: registration.names, prefixes: registration.prefixes)
        else { return }
        // The agent looks at the process, and then watches it.
        guard !world.processes[world.observers[observer].process].hasEnded else { return }
        var statement = Newcomer.Statement(subjects)
        if let state = registration.state {
            statement.state = state == .foreground && registration.previous.isEmpty ? nil : state
        }
        statement.previous = registration.previous
        statement.earlier = registration.earlier
        statement.decider = registration.decider
        let newcomer = Newcomer(
            name: sender,
            user: 0,
            process: Newcomer.ProcessFacts(id: SimulatedAgent.process(world.observers[observer].process)),
            hasSocket: true,
            statement: statement
        )
        feed(.register(newCall(sender, serial, isRegistration: true), newcomer), world)
    }

    private func newCall(_ sender: String, _ serial: Int, isRegistration: Bool = false) -> CallID {
        lastCall += 1
        let call = CallID(lastCall)
        calls[call] = Sender(name: sender, serial: serial, isRegistration: isRegistration)
        return call
    }

    // MARK: - What is done

    func feed(_ event: Event, _ world: World) {
        guard isAlive else { return }
        world.note("  agent: \(event)")
        let effects = coordinator.handle(event, at: Moment(nanoseconds: world.clock))
        for effect in effects where isAlive { perform(effect, world) }
    }

    private func ask(_ question: Question, _ message: ToBus, _ world: World) {
        lastSerial += 1
        questions[lastSerial] = question
        world.bus[connection].outbox.append(message)
    }

    private func send(_ id: ConnectionID, _ message: PeerMessage, _ world: World) {
        guard let name = coordinator.name(of: id) else { return }
        world.bus[connection].outbox.append(.send(to: name, message))
    }

    private func perform(_ effect: Effect, _ world: World) {
        world.note("    → \(effect)")
        if world.breaks(effect, of: self) { return }
        switch effect {
        case .answer(let call, let answer): reply(call, answer, world)
        case .refuse(let call, let refusal):
            world.note("agent refuses: \(refusal.message)")
            guard let caller = calls.removeValue(forKey: call), caller.serial >= 0 else { return }
            world.bus[connection].outbox.append(.send(to: caller.name, .refused(caller.serial)))
        case .tell(let id, let state, let marks):
            if marks, world.mutation == .marksAtOnce { news.append(.markIsReached(id)) }
            if marks, world.mutation != .neverMarks, world.mutation != .marksAtOnce {
                ask(.mark(id), .ask(serial: lastSerial + 1), world)
            }
            guard let name = coordinator.name(of: id) else { return }
            ask(.state(id), .send(to: name, .setState(lastSerial + 1, state)), world)
        case .deliver(let id, let names): deliver(names, to: id, world)
        case .tellDecider(let id, let decider): send(id, .decided(decider.name), world)
        case .awaitHeldBack(let id): ask(.heldBack(id), .ask(serial: lastSerial + 1), world)
        case .announce, .announceFact: break
        case .subscribe(let ticket, let names, let prefixes):
            let subjects = SimulatedAgent.subjects(names, prefixes)
            if world.mutation == .narrowsFirst, subjects.contains(Subject.everything) {
                for subject in rules.indices where Subject.isPrefix(subject) && rules[subject] > 0 {
                    rules[subject] = 0
                    world.bus[connection].outbox.append(.removeMatch(subject))
                }
            }
            for subject in subjects {
                rules[subject] += 1
                if rules[subject] == 1 { world.bus[connection].outbox.append(.addMatch(subject, serial: 0)) }
            }
            ask(.rules(ticket), .ask(serial: lastSerial + 1), world)
        case .unsubscribe(let ticket, let names, let prefixes):
            for subject in SimulatedAgent.subjects(names, prefixes) where rules[subject] > 0 {
                rules[subject] -= 1
                if rules[subject] == 0 { world.bus[connection].outbox.append(.removeMatch(subject)) }
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
            if let name = coordinator.name(of: id) { known[id] = world.bus.index(of: name) }
            if known[id] == nil { news.append(.connectionEnded(id)) }
        case .forget(let id, _):
            guard let index = known.removeValue(forKey: id), !drains.contains(where: { $0.id == id }) else { return }
            world.close(index)
        case .forgetProcess, .present, .observersCome, .observersHaveGone, .giveMemoryBack: break
        case .interest, .residentIsHeld, .residentHasPending, .changesAreInForce: break
        case .alarm(let time): alarm = time
        }
    }

    func deliver(_ names: [NotifyName], to id: ConnectionID, _ world: World) {
        guard let name = coordinator.name(of: id) else { return }
        let texts = names.map(\.string)
        if names.isEmpty {
            send(id, .deliver(-1, texts), world)
        } else {
            ask(.delivery(id), .send(to: name, .deliver(lastSerial + 1, texts)), world)
            guard world.mutation == .confirmsDelivery else { return }
            questions[lastSerial] = nil
            feed(.delivered(id), world)
        }
    }

    private static func subjects(_ names: [NotifyName], _ prefixes: [NamePrefix]) -> [Int] {
        names.compactMap { Subject.number(of: $0) } + prefixes.compactMap { Subject.number(of: $0) }
    }

    private func reply(_ call: CallID, _ answer: Effect.Answer, _ world: World) {
        guard let caller = calls.removeValue(forKey: call), caller.serial >= 0 else { return }
        let message: PeerMessage
        if case .registered(let state, let pending, let isComplete) = answer {
            let welcome = AgentInterface.Register.Answer(
                state: state,
                pending: pending.map(\.string),
                isComplete: isComplete
            )
            message = .registered(caller.serial, welcome)
        } else {
            message = .done(caller.serial)
        }
        world.bus[connection].outbox.append(.send(to: caller.name, message))
    }

    // MARK: - Parking

    private func drain(_ id: ConnectionID, _ world: World) {
        guard let index = known.removeValue(forKey: id), case .observer(let observer) = world.bus[index].owner else {
            news.append(.drained(id))
            return news.append(.found(id, []))
        }
        send(id, .mark(id.number), world)
        drains.append(Drain(id: id, connection: index, process: world.observers[observer].process))
    }

    /// Reads a piece of a stream.
    func readStream(_ place: Int, _ world: World) {
        guard drains.indices.contains(place) else { return }
        let index = drains[place].connection
        guard world.processes[drains[place].process].isStopped, world.bus[index].isOpen else {
            return finishDrain(place, world)
        }
        guard let message = world.bus[index].inbox.popFirst() else { return }
        if take(message, place, world) { finishDrain(place, world) }
    }

    /// - Returns: whether it is the mark.
    private func take(_ message: FromBus, _ place: Int, _ world: World) -> Bool {
        let index = drains[place].connection
        let isTorn = world.bus[index].isTorn
        world.bus[index].isTorn = false
        switch message {
        case .post(let post):
            if isTorn {
                world.oracle.torn(post, of: world.bus[index].owner)
                drains[place].torn.append(world.posts[post].name)
            } else {
                drains[place].found.append(post)
            }
        case .peer(let sender, .mark(drains[place].id.number)): return sender == world.bus[connection].name
        default: break
        }
        return false
    }

    private func finishDrain(_ place: Int, _ world: World) {
        let index = drains[place].connection
        world.close(index)
        // The process reads as well, if it runs again.
        if world.processes[drains[place].process].isStopped {
            while let message = world.bus[index].inbox.popFirst() { _ = take(message, place, world) }
        }
        let drain = drains.remove(at: place)
        news.append(.drained(drain.id))
        if world.mutation == .ignoresStream { return news.append(.found(drain.id, [])) }
        // Whose the names are that count only from their owner, the bus is asked when their turn comes.
        let names = drain.found.map { world.posts[$0].name }
        let plain = Set(names.filter { $0 != Subject.owned } + drain.torn)
        news.append(.found(drain.id, plain.sorted().map { Subject.names[$0] }))
        for post in drain.found where world.posts[post].name == Subject.owned {
            owned[drain.id, default: []].insert(world.posterName(of: post))
        }
    }

    // MARK: - Ends

    /// A connection of an observer has ended.
    func hungUp(_ index: Int) {
        if let id = known.first(where: { $0.value == index })?.key { news.append(.connectionEnded(id)) }
    }

    /// It is told to end.
    func leave(_ world: World) {
        feed(.ending, world)
        end(world)
    }

    /// It is killed.
    func end(_ world: World) {
        isAlive = false
        (drains, alarm) = ([], nil)
        // What it has written the bus still reads.
        world.bus.hangUp(connection)
        world.bus.failStarters()
    }
}

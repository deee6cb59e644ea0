// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// A program that observes: the observer's half of the protocol as it is, and a model of the connection around it,
/// which keeps the rules as `ObservingConnection` does.
final class SimulatedObserver {
    private enum Question {
        case rule(Int, topic: Int, generation: Int)
        case barrier(Int)
        case findOwner(search: Int)
        case startAgent(search: Int)
        case user(search: Int, owner: String)
        case register(agent: String)
        case report(LifecycleState)
        case sender(String)
    }

    private struct Topic {
        enum State { case adding, active, lost }
        /// Told apart from one of the same name that has ended.
        let number: Int
        var state = State.adding
        var generation = 0
        var count = 0
    }

    let number: Int
    let process: Int
    var lifecycle = ObserverLifecycle()
    /// Its connection to the bus; nil while there is none.
    private(set) var connection: Int?
    private(set) var deadline: Int64?
    private(set) var hasEnded = false
    private var topics = [Topic?](repeating: nil, count: Subject.count)
    private var generation = 0
    private var lastTopic = 0
    private var heldTopics: [Int] = []
    private var questions: [Int: Question] = [:]
    private var senders = SenderCheck()
    private var lastSerial = 0
    private var reports: [Int: LifecycleState] = [:]
    private var lastReport = 0
    /// Whether the bus has ended the connection before, and lives on.
    var wasCutOff = false

    init(number: Int, process: Int) {
        self.number = number
        self.process = process
    }

    func isActive(_ subject: Int) -> Bool { topics[subject]?.state == .active }
    func observes(_ subject: Int) -> Bool { topics[subject] != nil }
    /// Which names and prefixes the bus should have a rule for, now that nothing is under way.
    var wantedRules: [Int] { lifecycle.gate == .closed ? [] : topics.indices.filter { topics[$0] != nil } }
    var subjects: [Int] { topics.indices.filter { topics[$0] != nil } }

    // MARK: - The connection

    func connect(_ world: World) {
        let index = world.bus.connect(.observer(number))
        connection = index
        generation += 1
        run(.connected(uniqueName: world.bus[index].name, wasCutOff: wasCutOff), world)
        wasCutOff = false
        for subject in subjects { sendRule(subject, world) }
    }

    /// The next thing that has come.
    func step(_ world: World) {
        guard let connection else { return connect(world) }
        guard let message = world.bus[connection].inbox.popFirst() else {
            if !world.bus[connection].isOpen { lose(world) }
            return
        }
        world.bus[connection].isTorn = false
        switch message {
        case .post(let post): arrived(post, world)
        case .replied(let serial, let text): answered(serial, true, text, nil, world)
        case .failed(let serial): answered(serial, false, nil, nil, world)
        case .ownerChanged(let owner): run(.ownerChanged(owner), world)
        case .nameLost: break
        case .peer(let sender, let message): handle(message, from: sender, world)
        }
        replay(world)
    }

    func deadlineHasPassed(_ world: World) {
        deadline = nil
        world.oracle.deadlinePassed(self)
        run(.deadlinePassed, world)
        replay(world)
    }

    private func handle(_ message: PeerMessage, from sender: String, _ world: World) {
        func call(_ serial: Int, wantsReply: Bool = true) -> ObserverLifecycle.Call {
            ObserverLifecycle.Call(sender: sender, serial: UInt32(serial), wantsReply: wantsReply)
        }
        switch message {
        case .setState(let serial, let state): run(.setState(state, call(serial)), world)
        case .deliver(let serial, let names):
            run(.deliver(names, call(max(0, serial), wantsReply: serial >= 0)), world)
        case .decided(let decider): run(.decided(decider, by: sender), world)
        case .registered(let serial, let answer): answered(serial, true, nil, answer, world)
        case .done(let serial): answered(serial, true, nil, nil, world)
        case .refused(let serial): answered(serial, false, nil, nil, world)
        case .mark: run(.marked(by: sender), world)
        default: break
        }
    }

    private func answered(
        _ serial: Int,
        _ isDone: Bool,
        _ text: String?,
        _ welcome: AgentInterface.Register.Answer?,
        _ world: World
    ) {
        guard let question = questions.removeValue(forKey: serial) else { return }
        switch question {
        case .rule(let subject, let number, generation):
            if topics[subject]?.number == number { activate([subject], world) }
            if lifecycle.gate == .opening { run(.ruleAnswered, world) }
        case .rule: break  // About rules that have been taken off since.
        case .barrier(let barrier): run(.barrierPassed(barrier), world)
        case .findOwner(let search):
            if let text { findAgent(search, text, world) } else { askBus(.startAgent(search: search), world) }
        case .startAgent(let search):
            if isDone {
                askBus(.findOwner(search: search), world)
            } else {
                run(.found(search: search, agent: nil), world)
            }
        case .user(let search, let owner): run(.found(search: search, agent: isDone ? owner : nil), world)
        case .register(let agent): run(.registered(agent: agent, welcome), world)
        case .report(let state): world.oracle.reportAnswered(self, state, isDone)
        case .sender(let sender):
            senders.learn(user: text.flatMap { UInt32($0) }, of: sender)
            while let post = senders.next() { world.oracle.heard(post, world.posts[post].name, number) }
        }
    }

    private func lose(_ world: World) {
        wasCutOff = true
        connection = nil
        questions = [:]
        heldTopics = []
        let heldBack = senders.takeAll()
        if world.mutation != .forgetsHeldBack { lifecycle.keep(heldBack) }
        for name in heldBack { Subject.number(of: name).map { world.oracle.wasHeldBack($0, number) } }
        senders = SenderCheck()
        run(.lost, world)
        for subject in topics.indices where topics[subject] != nil { topics[subject]?.state = .lost }
        replay(world)
    }

    /// The process is killed.
    func end(_ world: World) {
        if let connection { world.bus.hangUp(connection) }
        connection = nil
        deadline = nil
        hasEnded = true
    }

    // MARK: - Registrations

    func observe(_ subject: Int, _ world: World) {
        if topics[subject] != nil {
            topics[subject]?.count += 1
            return
        }
        lastTopic += 1
        topics[subject] = Topic(number: lastTopic, count: 1)
        guard connection != nil else { return }
        sendRule(subject, world)
        let (names, prefixes) = (Subject.names(of: [subject]), Subject.prefixes(of: [subject]))
        run(.says(.observes(names: names, prefixes: prefixes)), world)
        replay(world)
    }

    func observeNoMore(_ subject: Int, _ world: World) {
        guard let topic = topics[subject] else { return }
        guard topic.count == 1 else {
            topics[subject]?.count -= 1
            return
        }
        topics[subject] = nil
        guard let connection else { return }
        if lifecycle.gate != .closed, topic.generation == generation {
            world.bus[connection].outbox.append(.removeMatch(subject))
        }
        let (names, prefixes) = (Subject.names(of: [subject]), Subject.prefixes(of: [subject]))
        run(.says(.observesNoMore(names: names, prefixes: prefixes)), world)
        replay(world)
    }

    func report(_ state: LifecycleState, _ world: World) {
        lastReport += 1
        reports[lastReport] = state
        world.oracle.reportBegins(self, state)
        run(.asks(request: lastReport), world)
        replay(world)
    }

    private func sendRule(_ subject: Int, _ world: World) {
        guard let connection, let topic = topics[subject], topic.generation != generation else { return }
        guard lifecycle.gate != .closed else { return activate([subject], world) }
        topics[subject]?.generation = generation
        lifecycle.rulesAreAsked(1)
        lastSerial += 1
        questions[lastSerial] = .rule(subject, topic: topic.number, generation: generation)
        world.bus[connection].outbox.append(.addMatch(subject, serial: lastSerial))
    }

    private func activate(_ subjects: [Int], _ world: World) {
        if lifecycle.isEntering, world.mutation != .confirmsAtOnce {
            heldTopics += subjects
            return
        }
        for subject in subjects where topics[subject] != nil {
            topics[subject]?.state = .active
            world.oracle.confirmed(self, subject)
        }
    }

    // MARK: - Posts

    private func arrived(_ post: Int, _ world: World) {
        guard lifecycle.isOpen else { return }
        let sender = world.posterName(of: post)
        switch senders.judge(post, world.posts[post], from: sender, world.mutation) {
        case .believed: world.oracle.heard(post, world.posts[post].name, number)
        case .asks: askBus(.sender(sender), world)
        case .held, .refused: break
        }
    }

    private func replay(_ world: World) {
        while let name = lifecycle.takeReplayed() {
            if let number = Subject.number(of: name) { world.oracle.replayed(number, self.number) }
        }
    }

    // MARK: - Effects

    private func run(_ event: ObserverLifecycle.Event, _ world: World) {
        let names = subjects.filter { !Subject.isPrefix($0) }.map { Subject.names[$0] }
        world.note("  observer \(number): \(event)")
        for effect in lifecycle.handle(event, names: { names }) { perform(effect, world) }
    }

    private func askBus(_ question: Question, _ world: World) {
        guard let connection else { return }
        lastSerial += 1
        questions[lastSerial] = question
        let message: ToBus =
            switch question {
            case .findOwner: .getOwner(serial: lastSerial)
            case .startAgent: .startAgent(serial: lastSerial)
            case .user(_, let name), .sender(let name): .getUser(of: name, serial: lastSerial)
            default: .ask(serial: lastSerial)
            }
        world.bus[connection].outbox.append(message)
    }

    private func send(_ agent: String, _ message: PeerMessage, _ world: World) {
        guard let connection else { return }
        world.bus[connection].outbox.append(.send(to: agent, message))
    }

    private func findAgent(_ search: Int, _ owner: String?, _ world: World) {
        askBus(owner.map { .user(search: search, owner: $0) } ?? .findOwner(search: search), world)
    }

    private func perform(_ effect: ObserverLifecycle.Effect, _ world: World) {
        world.note("    → \(effect)")
        if world.breaks(effect, of: self) { return }
        switch effect {
        case .watchAgent: if let connection { world.bus[connection].outbox.append(.watchOwner) }
        case .findAgent(let search, let owner): findAgent(search, owner, world)
        case .register(let agent, var registration):
            registration.names = Subject.names(of: subjects)
            registration.prefixes = Subject.prefixes(of: subjects)
            lastSerial += 1
            questions[lastSerial] = .register(agent: agent)
            send(agent, .register(lastSerial, registration), world)
        case .confirmRegistrations:
            let held = heldTopics
            heldTopics = []
            activate(held, world)
        case .withdrawRules: withdrawRules(world)
        case .putRules:
            generation += 1
            for subject in subjects { sendRule(subject, world) }
        case .askBarrier(let number): askBus(.barrier(number), world)
        case .publish(let state): world.note("observer \(number) is in \(state)")
        case .answer(let call): send(call.sender, .stateIsSet(Int(call.serial)), world)
        case .acknowledge(let call):
            if call.wantsReply { send(call.sender, .delivered(Int(call.serial)), world) }
        case .refuse(let call): if call.wantsReply { send(call.sender, .refused(Int(call.serial)), world) }
        case .tell(let agent, let statement): tell(agent, statement, world)
        case .ask(let agent, let request):
            guard let state = reports.removeValue(forKey: request) else { break }
            lastSerial += 1
            questions[lastSerial] = .report(state)
            send(agent, .report(lastSerial, state), world)
        case .fail(let request):
            if let state = reports.removeValue(forKey: request) { world.oracle.reportAnswered(self, state, false) }
        case .noteCutOff: break
        case .disconnect:
            guard let connection else { break }
            world.bus.disconnect(connection, readable: 0)
            world.closed(connection)
            lose(world)
        case .setDeadline(let milliseconds): deadline = milliseconds.map { world.clock + $0 * 1_000_000 }
        }
    }

    /// For a break: the bus is not asked.
    func passBarrier(_ number: Int, _ world: World) {
        for _ in subjects { run(.ruleAnswered, world) }
        run(.barrierPassed(number), world)
    }

    private func withdrawRules(_ world: World) {
        guard let connection else { return }
        var waiting: [Int] = []
        for subject in subjects {
            if topics[subject]?.generation == generation { world.bus[connection].outbox.append(.removeMatch(subject)) }
            if topics[subject]?.state != .active { waiting.append(subject) }
        }
        generation += 1
        activate(waiting, world)
    }

    private func tell(_ agent: String, _ statement: ObserverLifecycle.Statement, _ world: World) {
        switch statement {
        case .observes(let names, let prefixes):
            send(agent, .names(AgentInterface.AddNames(names: names, prefixes: prefixes)), world)
        case .observesNoMore(let names, let prefixes):
            send(agent, .noNames(AgentInterface.RemoveNames(names: names, prefixes: prefixes)), world)
        case .followsDesktop: break
        }
    }
}

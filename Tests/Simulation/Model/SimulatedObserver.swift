// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// A program that observes: the real observer's half of the protocol, and a model of the connection around it, which
/// keeps the rules as `Receiver` does.
final class SimulatedObserver {
    enum Question: Hashable {
        case rule(Int, topic: Int, generation: Int)
        case wideRule(generation: Int)
        case barrier(Int)
        case findOwner(search: Int)
        case startAgent(search: Int)
        case user(search: Int, owner: String)
        case register(agent: String)
        case report(LifecycleState)
        case sender(String)
        case nameState(Int, UInt64, agent: String, topic: Int?)
        case addition(Int)
    }

    enum Request: Hashable {
        case report(LifecycleState)
        case nameState(Int, UInt64, topic: Int?)
    }

    struct Topic: Hashable {
        enum State { case adding, active, lost }
        /// Distinguishes it from one of the same name that has ended.
        let number: Int
        var state = State.adding
        var generation = 0
        var count = 0
    }

    /// What was entered among the registrations, and has yet to be carried out.
    enum Command: Hashable {
        case add(Int, number: Int)
        case remove(Int, Topic)
    }

    struct HeldTopic: Hashable {
        let subject: Int
        let number: Int
    }

    struct Registration: Hashable {
        let registration: Int
        let subject: Int
    }

    struct NameState: Hashable {
        let value: UInt64
        let stamp: UInt64
    }

    let number: Int
    let process: Int
    var lifecycle = ObserverLifecycle()
    /// Its connection to the bus; nil if there is none. The world knows it too.
    private(set) var connection: Int?
    var deadline: Int64?
    private(set) var hasEnded = false
    var topics = [Topic?](repeating: nil, count: Subject.count)
    var generation = 0
    var reach: RuleReach
    var lastTopic = 0
    var heldTopics: [HeldTopic] = []
    var commands: [Command] = []
    var questions = Questions<Question>()
    var senders = SenderCheck()
    var lastSerial = 0
    /// What the agent is to be asked as soon as it knows this connection.
    var requests: [Int: Request] = [:]
    var lastRequest = 0
    /// Its registrations that were not canceled, and what each observes.
    var registrations: [Registration] = []
    var callbacks = SimulatedCallbacks()
    var followsDesktop: Bool
    /// The states of names that it has set, which it tells the next agent.
    var nameStates: [Int: NameState] = [:]
    /// What it has told the agent that it observes: a bit for each subject.
    var told: UInt8 = 0
    /// Whether the bus has cut it off and is still running.
    var wasCutOff = false
    /// Which bus it was last connected to.
    var busNumber = 0

    init(number: Int, process: Int, followsDesktop: Bool, _ world: World) {
        reach = RuleReach(world)
        self.number = number
        self.process = process
        self.followsDesktop = followsDesktop
    }

    init(copying other: SimulatedObserver) {
        number = other.number
        process = other.process
        lifecycle = other.lifecycle
        connection = other.connection
        deadline = other.deadline
        hasEnded = other.hasEnded
        topics = other.topics
        generation = other.generation
        reach = other.reach
        lastTopic = other.lastTopic
        heldTopics = other.heldTopics
        commands = other.commands
        questions = other.questions
        senders = other.senders
        lastSerial = other.lastSerial
        requests = other.requests
        lastRequest = other.lastRequest
        registrations = other.registrations
        callbacks = other.callbacks
        followsDesktop = other.followsDesktop
        nameStates = other.nameStates
        told = other.told
        wasCutOff = other.wasCutOff
        busNumber = other.busNumber
    }

    func isActive(_ subject: Int) -> Bool { topics[subject]?.state == .active }
    func observes(_ subject: Int) -> Bool { topics[subject] != nil }
    var subjects: [Int] {
        var all: [Int] = []
        all.reserveCapacity(topics.count)
        for subject in topics.indices where topics[subject] != nil { all.append(subject) }
        return all
    }

    // MARK: - The connection

    private func move(to connection: Int?, _ world: World) {
        self.connection = connection
        world.places[number].connection = connection
    }

    func connect(_ world: World) {
        let index = world.bus.connect(.observer(number))
        move(to: index, world)
        let isSameBus = busNumber == world.bus.number
        busNumber = world.bus.number
        generation += 1
        run(
            .connected(
                uniqueName: world.bus[index].name,
                wasCutOff: wasCutOff && isSameBus && world.mutation != .forgetsCutOff,
                isOnAnotherBus: !isSameBus && world.mutation != .keepsOldNames
            ),
            world
        )
        wasCutOff = false
        if world.mutation == .registersOnce, busNumber > 0 { return }
        for subject in subjects { sendRule(subject, world) }
    }

    /// Takes the next message.
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

    func handle(_ message: PeerMessage, from sender: String, _ world: World) {
        func call(_ serial: Int, wantsReply: Bool = true) -> ObserverLifecycle.Call {
            ObserverLifecycle.Call(sender: sender, serial: UInt32(serial), wantsReply: wantsReply)
        }
        switch message {
        case .setState(let serial, let state, let additions):
            // The agent is told what was added before it may suspend the program.
            carryOut(world)
            let count = world.mutation == .closesBehind ? .max : additions
            run(.setState(state, additions: count, call(serial)), world)
        case .deliver(let serial, let names):
            run(.deliver(names, call(max(0, serial), wantsReply: serial >= 0)), world)
        case .keepStates(let serial, let states):
            for state in states where sender == lifecycle.agent && world.mutation != .remembersOwnStates {
                guard let name = Subject.number(of: state.name), topics[name] != nil else { continue }
                if let known = nameStates[name], known.stamp > state.entry.stamp { continue }
                nameStates[name] = NameState(value: state.entry.value, stamp: state.entry.stamp)
            }
            send(sender, .delivered(serial), world)
        case .decided(let decider): run(.decided(decider, by: sender), world)
        case .registered(let serial, let answer): answered(serial, true, nil, answer, world)
        case .done(let serial): answered(serial, true, nil, nil, world)
        case .stamp(let serial, let stamp): answered(serial, true, nil, nil, stamp: stamp, world)
        case .refused(let serial): answered(serial, false, nil, nil, world)
        case .mark: run(.marked(by: sender), world)
        default: break
        }
    }

    func answered(
        _ serial: Int,
        _ isDone: Bool,
        _ text: String?,
        _ welcome: AgentInterface.Register.Answer?,
        stamp: UInt64? = nil,
        _ world: World
    ) {
        guard let question = questions.take(serial) else { return }
        switch question {
        case .rule(let subject, let number, generation):
            ruleAnswered(subject, number, isDone, world)
            if gate == .opening { run(.ruleAnswered, world) }
        case .wideRule(generation):
            wideRuleAnswered(isDone, world)
            if gate == .opening { run(.ruleAnswered, world) }
        case .rule, .wideRule: break  // About rules that were removed meanwhile.
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
        case .addition(let number): run(.additionAnswered(number), world)
        case .report(let state): world.oracle.reportAnswered(self, state, isDone)
        case .sender(let sender):
            senders.learn(user: text.flatMap { UInt32($0) }, of: sender)
            while let post = senders.next() { hear(post, world) }
        case .nameState(let name, let value, let agent, let topic):
            guard let stamp else { return world.nameStateIsAnswered(name) }
            if !lifecycle.tellsNextAgent(sayingBy: agent), world.mutation != .believesReplaced {
                return ask(.nameState(name, value, topic: topic), world)
            }
            world.nameStateIsAnswered(name)
            let isObserved = topic != nil && topics[name]?.number == topic
            if isObserved { nameStates[name] = NameState(value: value, stamp: stamp) }
            world.nameStateIsSet(name, value, stamp, by: isObserved ? number : nil)
        }
    }

    func lose(_ world: World) {
        wasCutOff = true
        move(to: nil, world)
        questions = Questions()
        heldTopics = []
        let heldBack = senders.takeAll()
        if world.mutation != .forgetsHeldBack { lifecycle.keep(heldBack) }
        for name in heldBack { Subject.number(of: name).map { world.oracle.wasHeldBack($0, number) } }
        senders = SenderCheck()
        reach = RuleReach(world)
        run(.lost, world)
        for subject in topics.indices where topics[subject] != nil { topics[subject]?.state = .lost }
        replay(world)
    }

    /// The process is killed.
    func end(_ world: World) {
        if let connection { world.bus.hangUp(connection) }
        move(to: nil, world)
        (deadline, commands) = (nil, [])
        hasEnded = true
        world.places[number].hasEnded = true
    }

    // MARK: - Registrations

    func observe(_ subject: Int, as registration: Int, _ world: World) {
        registrations.append(Registration(registration: registration, subject: subject))
        if topics[subject] != nil {
            topics[subject]?.count += 1
            return
        }
        lastTopic += 1
        topics[subject] = Topic(number: lastTopic, count: 1)
        if connection != nil { commands.append(.add(subject, number: lastTopic)) }
    }

    /// Carries out what was entered since the last time: another thread may have entered it.
    func carryOut(_ world: World) {
        let all = commands
        commands = []
        for command in all where connection != nil {
            switch command {
            case .add(let subject, let number): add(subject, number, world)
            case .remove(let subject, let topic):
                removeRule(subject, topic, world)
                let (names, prefixes) = (Subject.names(of: [subject]), Subject.prefixes(of: [subject]))
                run(.says(.observesNoMore(names: names, prefixes: prefixes)), world)
            }
            replay(world)
        }
    }

    private func add(_ subject: Int, _ number: Int, _ world: World) {
        func send() { if topics[subject]?.number == number { sendRule(subject, world) } }
        if world.mutation == .sendsRulesFirst { send() }
        let (names, prefixes) = (Subject.names(of: [subject]), Subject.prefixes(of: [subject]))
        run(.says(.observes(names: names, prefixes: prefixes)), world)
        if world.mutation != .sendsRulesFirst { send() }
    }

    func follow(_ follows: Bool, _ world: World) {
        followsDesktop = follows
        run(.says(.followsDesktop(follows)), world)
        replay(world)
    }

    func setNameState(_ name: Int, _ value: UInt64, _ world: World) {
        guard connection != nil, topics[name]?.state == .active else { return }
        world.nameStateIsAsked(name)
        ask(.nameState(name, value, topic: topics[name]?.number), world)
    }

    func observeNoMore(_ subject: Int, as registration: Int, _ world: World) {
        if world.mutation != .callsCancelled { registrations.removeAll { $0.registration == registration } }
        callbacks.cancel(registration, world)
        guard let topic = topics[subject] else { return }
        guard topic.count == 1 else {
            topics[subject]?.count -= 1
            return
        }
        topics[subject] = nil
        nameStates[subject] = nil
        if connection != nil { commands.append(.remove(subject, topic)) }
    }

    func report(_ state: LifecycleState, _ world: World) {
        world.oracle.reportBegins(self, state)
        ask(.report(state), world)
    }

    func ask(_ request: Request, _ world: World) {
        lastRequest += 1
        requests[lastRequest] = request
        run(.asks(request: lastRequest), world)
        replay(world)
    }
}

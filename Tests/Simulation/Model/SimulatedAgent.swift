// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// An agent: the real coordinator, and a model of what surrounds it.
final class SimulatedAgent {
    enum Question {
        case rules(Ticket)
        case mark(ConnectionID)
        case heldBack(ConnectionID)
        indirect case whose(Int, String, AgentInterface.Register)
        case state(ConnectionID)
        case delivery(ConnectionID, [NotifyName])
        case keeping(ConnectionID)
        case sender(String)
        /// Who posted the names in a stream that count only from their owner.
        case poster(ConnectionID, [NotifyName], ArraySlice<String>)
        /// Whether everything has arrived that was sent before a stream was read.
        case stream(ConnectionID, [NotifyName], ArraySlice<String>)
        /// Whether it has got the name of the agent before it.
        case name
    }

    struct Sender: Hashable {
        let name: String
        let serial: Int
        let isRegistration: Bool
        /// The state that it asks for.
        var change: Change?
    }

    /// A state for a target; nil if it is to be released.
    struct Change: Hashable {
        let target: Target?
        let state: LifecycleState?
    }

    /// A stream that the agent reads up to the mark.
    struct Drain: Hashable {
        let id: ConnectionID
        let connection: Int
        let process: Int
        /// Posts, or just the name of a torn one.
        var found: [Int] = []
        var torn: [Int] = []
    }

    let number: Int
    let connection: Int
    var coordinator: Coordinator
    var isAlive = true
    var alarm: Int64?
    var napAlarm: Int64?
    var useQuestion: UseQuestion?
    /// What it has stopped because it naps.
    var napping: [NapProgram: [ProcessID]] = [:]
    var drains: [Drain] = []
    /// Who posted the names in a stream that count only from their owner.
    var owned: [ConnectionID: Set<String>] = [:]
    /// What it learns by other means than the bus.
    var news = Queue<Event>()
    /// The processes that it watches.
    var looksAt: Set<Int> = []
    var known: [ConnectionID: Int] = [:]
    var rules = [Int](repeating: 0, count: Subject.everything + 1)
    var questions = Questions<Question>()
    var senders = SenderCheck()
    var calls: [CallID: Sender] = [:]
    var lastSerial = 0
    var lastWait: UInt64 = 0
    /// Connections whose state only the desktop had decided before that wait.
    private(set) var followers: Set<ConnectionID> = []
    /// Whether a caller has waited too long and is being told so.
    var isExpiring = false
    /// How many names were lost for lack of room.
    var dropped: [ConnectionID: UInt64] = [:]
    var lastCall: UInt64 = 0
    /// Whether it is to hand over, and when it does so at the latest.
    var isLeaving = false
    var leavesAt: Int64?
    /// The agent before it, until everything from there has been read.
    var predecessor: Predecessor?
    /// Calls that have come before it served.
    var heldCalls = Queue<HeldCall>()
    /// When the observers have registered with it.
    var heritageAgesAt: Int64?

    init(number: Int, connection: Int, _ coordinator: Coordinator) {
        self.number = number
        self.connection = connection
        self.coordinator = coordinator
    }

    init(copying other: SimulatedAgent) {
        number = other.number
        connection = other.connection
        coordinator = other.coordinator
        isAlive = other.isAlive
        alarm = other.alarm
        napAlarm = other.napAlarm
        useQuestion = other.useQuestion
        napping = other.napping
        drains = other.drains
        owned = other.owned
        news = other.news
        looksAt = other.looksAt
        known = other.known
        rules = other.rules
        questions = other.questions
        senders = other.senders
        calls = other.calls
        lastSerial = other.lastSerial
        lastWait = other.lastWait
        followers = other.followers
        isExpiring = other.isExpiring
        dropped = other.dropped
        lastCall = other.lastCall
        isLeaving = other.isLeaving
        leavesAt = other.leavesAt
        predecessor = other.predecessor
        heldCalls = other.heldCalls
        heritageAgesAt = other.heritageAgesAt
    }

    private static let configuration = {
        var configuration = Coordinator.Configuration()
        configuration.untouchables = []
        configuration.sources = ["logind"] + Desktop.sources
        return configuration
    }()

    /// One that knows no program yet.
    static func coordinator(_ setting: World.Setting, _ mutation: Mutation?) -> Coordinator {
        var configuration = SimulatedAgent.configuration
        configuration.prefixRules = setting.prefixRules
        configuration.proxyParts = setting.proxyParts
        if let limit = setting.callLimit { configuration.callLimit = limit }
        configuration.facts = setting.policy
        if !setting.hasDesktop { configuration.sources = [] }
        if setting.exempts, mutation != .ignoresExempt {
            configuration.exemptApplications = [World.Setting.application]
        }
        configuration.naps = setting.naps.map { [$0.rule] } ?? []
        if mutation == .napsAtOnce { for index in configuration.naps.indices { configuration.naps[index].delay = 0 } }
        if mutation == .sleepAffectsAll { configuration.facts.sleep.others = .everyone }
        if let limit = setting.pendingLimit { configuration.quotas.pendingNames = limit }
        if mutation == .dropsEarly { configuration.quotas.pendingNames = 1 }
        return Coordinator(configuration)
    }

    static func process(_ number: Int) -> ProcessID { ProcessID(pid: Int32(100 + number), startTime: 1, user: 0) }

    /// Whether the agent has a rule of its own for a name or a prefix.
    func hears(_ subject: Int) -> Bool { rules[subject] > 0 }
    /// The rules that it has and does not need, if these are to be held.
    func surplusRules(_ held: Set<Int>, _ setting: World.Setting) -> [Int] {
        rules.indices.filter { subject in
            if rules[subject] == 0 { return false }
            if subject == Subject.everything { return held.count(where: Subject.isPrefix) <= setting.prefixRules / 2 }
            return !held.contains(subject)
        }
    }

    /// Before it knows what the agent before it knew, it answers no call.
    var isServing: Bool { predecessor == nil }

    func knows(_ index: Int) -> ConnectionID? { known.first { $0.value == index }?.key }

    /// What a connection was handed, and is handed once more if its process is parked before it confirms that.
    func unconfirmedNames(of index: Int) -> [Int] {
        var all: [Int] = []
        questions.forEach { _, question in
            guard case .delivery(let id, let names) = question, known[id] == index else { return }
            all += names.compactMap { Subject.number(of: $0) }
        }
        return all
    }

    // MARK: - Arrivals

    /// Whether there is something to read or to answer.
    func hasWork(_ world: World) -> Bool {
        !world.bus[connection].inbox.isEmpty || isServing && !heldCalls.isEmpty
    }

    func step(_ world: World) {
        if isServing, let call = heldCalls.popFirst() { return handle(call.message, from: call.sender, world) }
        guard let message = world.bus[connection].inbox.popFirst() else { return }
        switch message {
        case .post(let post):
            guard world.isPost(post) else { return }
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
        case .peer(let sender, let message):
            if !isServing { return heldCalls.append(HeldCall(sender: sender, message: message)) }
            handle(message, from: sender, world)
        }
    }

    /// The sources report what has changed, and wait until that is in force.
    ///
    /// - Parameter old: what they have reported before, if they have.
    func learn(_ desktop: Desktop, _ old: Desktop?, _ world: World) {
        if !world.setting.hasDesktop { return }
        var facts = desktop.news(world.setting, world.mutation)
        if let old {
            if old.isLocked == desktop.isLocked, old.isAsleep == desktop.isAsleep { facts["logind"] = nil }
            for (place, source) in Desktop.sources.enumerated() where old.focus[place] == desktop.focus[place] {
                facts[source] = nil
            }
        }
        lastWait += 1
        // Each comes when it comes.
        for (source, fact) in facts.sorted(by: { $0.key < $1.key }) { news.append(.news([source: fact])) }
        news.append(.awaitChanges(lastWait))
    }

    func takeNews(_ world: World) {
        guard let event = news.popFirst() else { return }
        if world.mutation == .overridesPerson, case .news = event {
            feed(.release(newCall("", -1), by: NotifyCoordinator.Caller(user: 0), nil), world)
        }
        if case .awaitChanges(let number) = event {
            followers = Set(list.filter(\.decider.isDesktop).map(\.id))
            if world.mutation == .saysLockedEarly { return world.desktopIsInForce(number, self) }
        }
        if case .processStopped(let process) = event {
            for observer in world.observers where SimulatedAgent.process(observer.process) == process {
                world.oracle.stopIsNoticed(observer.number, told: observer.told & ~observer.unread(world))
            }
        }
        guard case .drained(let id) = event, case .found(id, let names) = news.popFirst() else {
            return feed(event, world)
        }
        let senders = (owned.removeValue(forKey: id) ?? []).sorted()[...]
        ask(.stream(id, names, senders), .ask(serial: lastSerial + 1), world)
    }

    /// - Parameter senders: those whose user the bus has not been asked about yet.
    func streamIsRead(_ id: ConnectionID, _ names: [NotifyName], _ senders: ArraySlice<String>, _ world: World) {
        if let sender = senders.first {
            return ask(
                .poster(id, names, senders.dropFirst()),
                .getUser(of: sender, serial: lastSerial + 1),
                world
            )
        }
        if id == Predecessor.id { return predecessorIsRead(names, world) }
        // The successor of the connection gets what was found.
        let receiver = self.receiver(ofStream: id)
        feed(.drained(id), world)
        if let receiver { feed(.found(receiver, names), world) }
    }

    func alarmHasCome(_ world: World) {
        alarm = nil
        isExpiring = true
        feed(.alarm, world)
        isExpiring = false
    }

    func handle(_ message: PeerMessage, from sender: String, _ world: World) {
        switch message {
        case .register(let serial, let registration):
            ask(.whose(serial, sender, registration), .getUser(of: sender, serial: lastSerial + 1), world)
        case .names(let serial, let names):
            guard let added = try? Subjects(names: names.names, prefixes: names.prefixes) else { return }
            feed(.addNames(newCall(sender, serial), from: sender, added), world)
        case .noNames(let names):
            guard let removed = try? Subjects(names: names.names, prefixes: names.prefixes) else { return }
            feed(.removeNames(newCall(sender, -1), from: sender, removed), world)
        case .report(let serial, let state): feed(.report(newCall(sender, serial), from: sender, state), world)
        case .follow(let follows): feed(.followDesktop(newCall(sender, -1), from: sender, follows), world)
        case .setNameState(let serial, let name, let value):
            // No two are set at the same time.
            if world.standsStill { world.clock += 1 }
            let caller = NotifyCoordinator.Caller(user: 0)
            feed(.setNameState(newCall(sender, serial), by: caller, Subject.names[name], value), world)
        case .change(let serial, let target, let state, let freezes):
            let call = newCall(sender, serial, Change(target: target, state: state), world)
            feed(
                .setState(call, by: NotifyCoordinator.Caller(user: 0), target, state, freezes: freezes, strangers: []),
                world
            )
        case .release(let serial, let target):
            let call = newCall(sender, serial, Change(target: target, state: nil), world)
            feed(.release(call, by: NotifyCoordinator.Caller(user: 0), target), world)
        case .stateIsSet(let serial), .delivered(let serial): answered(serial, isDone: true, nil, world)
        case .namesAdded(let serial):
            guard case .state(let id) = questions.take(serial) else { return }
            feed(.told(id, .namesAdded), world)
        case .refused(let serial):
            if case .state(let id) = questions[serial] {
                _ = questions.take(serial)
                feed(.told(id, .failed("no")), world)
            } else {
                answered(serial, isDone: false, nil, world)
            }
        default: break
        }
    }

    func answered(_ serial: Int, isDone: Bool, _ text: String?, _ world: World) {
        guard let question = questions.take(serial) else { return }
        switch question {
        case .rules(let ticket): feed(.rulesAreSet(ticket, failure: isDone ? nil : "no"), world)
        case .mark(let id): feed(.markIsReached(id), world)
        case .heldBack(let id): feed(.nothingIsHeldBack(id), world)
        case .whose(let serial, let sender, let registration):
            if isDone { register(serial, sender, registration, world) }
        case .name: beginReading(world)
        case .delivery(let id, _): feed(.delivered(id), world)
        case .keeping(let id): feed(.statesAreKept(id), world)
        case .sender(let sender):
            senders.learn(user: text.flatMap { UInt32($0) }, of: sender)
            while let post = senders.next() { feed(.posted(Subject.names[world.posts[post].name]), world) }
        case .stream(let id, let names, let senders): streamIsRead(id, names, senders, world)
        case .poster(let id, let names, let others):
            let isOwner = text.flatMap { UInt32($0) } == Subject.owner
            streamIsRead(id, isOwner ? names + [Subject.names[Subject.owned]] : names, others, world)
        case .state(let id):
            let holdsBack = senders.isHolding && world.mutation != .handsBackEarly
            feed(.told(id, isDone ? .done(dropped: 0, isHoldingBack: holdsBack) : .gone), world)
        }
    }

    func register(_ serial: Int, _ sender: String, _ registration: AgentInterface.Register, _ world: World) {
        guard let index = world.bus.index(of: sender), case .observer(let observer) = world.bus[index].owner,
            let subjects = try? Subjects(names: registration.names, prefixes: registration.prefixes)
        else { return }
        // The agent examines the process and then watches it.
        guard !world.processes[world.observers[observer].process].hasEnded else { return }
        var statement = Newcomer.Statement(subjects)
        if let state = registration.state {
            statement.state = state == .foreground && registration.previous.isEmpty ? nil : state
        }
        statement.previous = registration.previous
        statement.earlier = registration.earlier
        statement.decider = registration.decider
        statement.followsDesktop = registration.followsDesktop
        statement.states = registration.states.compactMap { entry in
            guard let name = try? NotifyName(entry.name) else { return nil }
            return (name, NameStateTable.Entry(value: entry.number, stamp: entry.stamp))
        }
        let newcomer = Newcomer(
            name: sender,
            user: 0,
            process: facts(of: SimulatedAgent.process(world.observers[observer].process), world),
            hasSocket: true,
            statement: statement
        )
        if world.mutation == .unsubscribesFirst, id(of: registration.previous) != nil {
            renewRules(Subject.numbers(registration.names, registration.prefixes), world)
        }
        feed(.register(newCall(sender, serial, isRegistration: true), newcomer), world)
    }

    func newCall(_ sender: String, _ serial: Int, isRegistration: Bool = false) -> CallID {
        lastCall += 1
        let call = CallID(lastCall)
        calls[call] = Sender(name: sender, serial: serial, isRegistration: isRegistration)
        return call
    }

    func newCall(_ sender: String, _ serial: Int, _ change: Change, _ world: World) -> CallID {
        if world.mutation == .forgetsSuperseded { forgetSuperseded(by: change) }
        let call = newCall(sender, serial)
        calls[call]?.change = change
        return call
    }

    // MARK: - Ending

    /// An observer's connection has ended.
    func hungUp(_ index: Int) {
        if let id = known.first(where: { $0.value == index })?.key { news.append(.connectionEnded(id)) }
    }

    /// The agent is asked to terminate.
    func leave(_ world: World) {
        feed(.ending(keeping: []), world)
        end(world)
    }

    /// The agent is killed.
    func end(_ world: World) {
        isAlive = false
        (drains, alarm, napAlarm, useQuestion) = ([], nil, nil, nil)
        if let predecessor { world.close(predecessor.connection) }
        // The bus still reads what it has written.
        world.bus.hangUp(connection)
        world.bus.failStarters()
    }
}

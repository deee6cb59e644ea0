// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// An agent, some observers, posters and a bus in one thread. The caller of ``take(_:)`` decides which acts next.
package final class World {
    struct Process: Hashable {
        var isStoppedByOthers = false
        /// Whether the agent has stopped it.
        var isFrozen = false
        /// Whether the agent has noticed that it is stopped from outside.
        var isKnownToStand = false
        var hasEnded = false
        /// Whether the agent has stopped it because its program naps.
        var isNapping = false
        var isStopped: Bool { isStoppedByOthers || isFrozen || isNapping }
    }

    /// Where an observer reads. It is here, so that no step has to visit the observers.
    struct Place: Hashable {
        let process: Int
        var connection: Int?
        var hasEnded = false
    }

    struct NameState: Hashable {
        let value: UInt64
        let stamp: UInt64
        /// The observer that tells the next agent; nil if none does.
        var setter: Int?
    }

    struct HeldState: Hashable {
        let value: UInt64
        var observers: Set<Int>
    }

    struct Registration: Hashable {
        let observer: Int
        let subject: Int
        var isCancelled = false
    }

    struct Request: Hashable {
        let serial: Int
        let observers: [Int]
        let state: LifecycleState?
    }

    var bus = Bus()
    var processes: [Process]
    var observers: [SimulatedObserver] = []
    var places: [Place] = []
    var agent: SimulatedAgent?
    var estate: Estate?
    var posts: [Post] = []
    var oracle = Oracle()
    var clock: Int64 = 0
    var registrations: [Registration] = []
    var requests: [Request] = []
    /// The observers that were registered when the agent answered a request.
    var meantBy: [Int: [Int]] = [:]
    var desktop = Desktop()
    var nap = NapModel()
    /// The last state of each name, and who set it.
    var nameStates: [Int: NameState] = [:]
    /// The states that the agent has known since everything was at rest, and who has observed the names since.
    var heldStates: [Int: HeldState] = [:]
    /// How many attempts to set each name's state have not been answered yet.
    var unansweredSettings = SIMD4<Int>.zero
    var lastSerial = 0
    var agents = 0
    private(set) var posters: [SimulatedPoster] = []
    /// Each agent begins with a copy.
    let newCoordinator: Coordinator
    let setting: Setting
    /// The connections of those who change states.
    var controls: [Int]
    let encodes: Bool
    let mutation: Mutation?
    let isNoted: Bool
    var notes: [String] = []
    package var steps = 0
    /// Whether the time passes only while nothing else happens, so that the same may happen in several orders.
    let standsStill: Bool

    static let persons = 2

    package init(_ setting: Setting, mutation: Mutation? = nil, isNoted: Bool = false, standsStill: Bool = false) {
        self.mutation = mutation
        self.isNoted = isNoted
        self.standsStill = standsStill
        newCoordinator = SimulatedAgent.coordinator(setting, mutation)
        encodes = setting.encodes
        bus.startsAgents = setting.busStartsAgents
        bus.ruleLimit = setting.scarcity.rules
        self.setting = setting
        var connections: [Int] = []
        for number in Post.users.indices { connections.append(bus.connect(.poster(number))) }
        var controls: [Int] = []
        for _ in 0..<World.persons { controls.append(bus.connect(.control)) }
        self.controls = controls
        processes = Array(repeating: Process(), count: (setting.processes.max() ?? 0) + 1)
        oracle.reportedTogether = processes.indices.map { process in
            setting.processes.indices.filter { setting.processes[$0] == process }
        }
        posters = connections.enumerated().map { SimulatedPoster(number: $0, connection: $1, self) }
        posts.reserveCapacity(32)
        oracle.posters.reserveCapacity(32)
        oracle.registrations.reserveCapacity(16)
        for (number, process) in setting.processes.enumerated() {
            places.append(Place(process: process))
            let follows = process == setting.follower
            observers.append(SimulatedObserver(number: number, process: process, followsDesktop: follows, self))
            oracle.addObserver()
        }
        for (observer, subject) in setting.registrations { register(observer, subject) }
        if setting.beginsWithAgent { startAgent() }
    }

    /// A world in the same state, which shares nothing with the other that either of them changes.
    package init(copying other: World) {
        bus = other.bus
        processes = other.processes
        observers = other.observers.map(SimulatedObserver.init(copying:))
        places = other.places
        agent = other.agent.map(SimulatedAgent.init(copying:))
        estate = other.estate
        posts = other.posts
        oracle = other.oracle
        clock = other.clock
        registrations = other.registrations
        requests = other.requests
        meantBy = other.meantBy
        desktop = other.desktop
        nap = other.nap
        nameStates = other.nameStates
        heldStates = other.heldStates
        unansweredSettings = other.unansweredSettings
        lastSerial = other.lastSerial
        agents = other.agents
        posters = other.posters.map(SimulatedPoster.init(copying:))
        newCoordinator = other.newCoordinator
        setting = other.setting
        controls = other.controls
        encodes = other.encodes
        mutation = other.mutation
        isNoted = other.isNoted
        notes = other.notes
        steps = other.steps
        standsStill = other.standsStill
    }

    /// What exists when a history begins.
    package struct Setting: Sendable {
        /// The process of each observing connection.
        package var processes: [Int]
        package var registrations: [(Int, Int)]
        /// The names that are posted, and the names and prefixes that are observed. There are few of them, so that they
        /// often match.
        package var names: [Int]
        package var subjects: [Int]
        package var busStartsAgents: Bool
        package var beginsWithAgent: Bool
        /// With more prefixes than this, the agent has a single rule for all.
        package var prefixRules: Int
        /// How much the agent does at once for programs that don't listen.
        var proxyParts = ProxyParts()
        /// How many calls the agent makes before one is answered; nil for the usual limit.
        var callLimit: Int?
        /// The process that follows the desktop from the beginning, if one does.
        package var follower: Int?
        /// The processes that belong to one application.
        package var applications: Set<Int>
        /// Whether the configuration exempts that application, so that only its own reports change its state.
        package var exempts = false
        /// Whether the bus lets only root post reserved names by their path.
        package var reservesNames = false
        /// Whether there is a desktop, with sources that report on it.
        var hasDesktop = true
        /// Whom the focus, the lock and sleep affect.
        package var focusFollowers: Desktop.Who
        package var sessionFollowers: Desktop.Who
        package var sleepFollowers: Desktop.Who
        package var naps: NapSetting?
        /// How many names may wait for programs; nil for the usual limit.
        package var pendingLimit: Int?
        package var scarcity = Scarcity.none
        /// Whether messages are encoded and decoded on their way.
        package var encodes: Bool
    }

    package var failure: String? { oracle.failure }

    func note(_ text: @autoclosure () -> String) { if isNoted { notes.append(text()) } }

    // MARK: - What can happen

    func hasWork(observer number: Int) -> Bool {
        let place = places[number]
        if place.hasEnded || processes[place.process].isStopped { return false }
        guard let connection = place.connection else { return !bus.isAway }
        return bus.hasNews(connection)
    }

    /// Collects the steps that are under way, which must be taken before everything can come to rest.
    func collect(_ enabled: inout [Step]) {
        enabled.removeAll(keepingCapacity: true)
        for index in bus.writers { enabled.append(.route(index)) }
        for number in places.indices where hasWork(observer: number) { enabled.append(.observer(number)) }
        for observer in observers where !observer.commands.isEmpty && !hasEndedOrStopped(observer.number) {
            enabled.append(.carryOut(observer.number))
        }
        if setting.scarcity.slowCallbacks {
            for observer in observers where observer.callbacks.hasWork && !hasEndedOrStopped(observer.number) {
                enabled.append(.callback(observer: observer.number))
            }
        }
        for person in controls.indices where !bus[controls[person]].inbox.isEmpty { enabled.append(.control(person)) }
        if setting.scarcity.socket != nil || setting.scarcity.restartsBus {
            for poster in posters
            where poster.hasPosts && (poster.connection == nil ? !bus.isAway : poster.hasRoom(self)) {
                enabled.append(.poster(poster.number))
            }
        }
        // The agent that takes over what another one knew.
        if estate != nil, !bus.isAway { enabled.append(.startAgent) }
        guard let agent, agent.isAlive else { return }
        if agent.hasWork(self) { enabled.append(.agent) }
        if agent.canLeave(self) { enabled.append(.handOver) }
        if agent.canReadPredecessor(self) { enabled.append(.readPredecessor) }
        if !agent.news.isEmpty { enabled.append(.news) }
        for place in agent.drains.indices where canRead(agent.drains[place], agent) { enabled.append(.stream(place)) }
        for process in processes.indices where canNotice(process, agent) { enabled.append(.notice(process)) }
    }

    func canRead(_ drain: SimulatedAgent.Drain, _ agent: SimulatedAgent) -> Bool {
        // Once the bus has read the mark, it is in the stream, or the process has read it.
        !processes[drain.process].isStopped || bus.hasNews(drain.connection) || bus.isIdle(agent.connection)
    }

    func canNotice(_ process: Int, _ agent: SimulatedAgent) -> Bool {
        let one = processes[process]
        return one.isStoppedByOthers
            ? !one.isKnownToStand && agent.looksAt.contains(process)
            : one.isKnownToStand
    }

    // MARK: - What happens

    package func take(_ step: Step) {
        steps += 1
        // No two steps happen at the same time.
        if !standsStill { clock += 1 }
        if isNoted { notes.append("\(step)") }
        switch step {
        case .route(let index): route(index)
        case .observer(let number):
            if observers.indices.contains(number), hasWork(observer: number) { observers[number].step(self) }
        case .agent: if let agent, agent.isAlive { agent.step(self) }
        case .control(let person): readAnswer(person)
        case .news: agent?.takeNews(self)
        case .stream(let place): agent?.readStream(place, self)
        case .notice(let process): notice(process)
        case .post(let poster, let name): post(poster, name)
        case .poster(let number): posters[number].step(self)
        case .cutPoster(let number): cutPoster(number)
        case .endPoster(let number): posters[number].beginExit(self)
        case .endBus(let readable): endBus(readable)
        case .startBus: startBus()
        case .slow(let observer): if !hasEndedOrStopped(observer) { observers[observer].callbacks.beginLongOne() }
        case .callback(let observer): if !hasEndedOrStopped(observer) { observers[observer].callbacks.step(self) }
        case .observe(let observer, let subject): register(observer, subject)
        case .cancel(let registration): cancel(registration)
        case .carryOut(let observer): if !hasEndedOrStopped(observer) { observers[observer].carryOut(self) }
        case .change(let process, let state, let freezes, let person):
            request(oracle.reportedTogether[process], state, by: person) {
                .change($0, .process(Int32(100 + process)), state, freezes: freezes)
            }
        case .changeOne(let observer, let state, let person):
            guard let connection = observers[observer].connection else { return }
            let name = bus[connection].name
            request([observer], state, by: person) { .change($0, .connection(name), state, freezes: false) }
        case .changeApplication(let state, let freezes, let person):
            request(observersOfApplication, state, by: person) {
                .change($0, .application(Setting.application), state, freezes: freezes)
            }
        case .release(let process, let person):
            request(oracle.reportedTogether[process], nil, by: person) {
                .release($0, .process(Int32(100 + process)))
            }
        case .releaseApplication(let person):
            request(observersOfApplication, nil, by: person) { .release($0, .application(Setting.application)) }
        case .releaseAll(let person):
            request(Array(observers.indices), nil, by: person) { .release($0, nil) }
        case .report(let observer, let state):
            if hasEndedOrStopped(observer) { return }
            observers[observer].report(state, self)
        case .stop(let process, let tears): stop(process, tears: tears)
        case .go(let process): processes[process].isStoppedByOthers = false
        case .kill(let process): kill(process)
        case .cut(let observer, let readable): cut(observer, readable)
        case .lock(let locks): change { $0.isLocked = locks }
        case .sleep(let sleeps): change { $0.isAsleep = sleeps }
        case .focus(let source, let focus):
            change { $0.focus[source] = focus }
            focusMayHaveMoved()
        case .sound(let plays): soundChanges(plays)
        case .follow(let observer, let follows):
            if hasEndedOrStopped(observer) || observers[observer].followsDesktop == follows { return }
            if !isExempt(observers[observer]) { oracle.desktopChanges(observer) }
            observers[observer].follow(follows, self)
        case .setNameState(let observer, let name, let value):
            if hasEndedOrStopped(observer) { return }
            observers[observer].setNameState(name, value, self)
        case .startAgent: if !bus.isAway { startAgent() }
        case .killAgent: killAgent()
        case .endAgent:
            guard let agent, agent.isAlive else { return }
            knowledgeIsLost()
            agent.leave(self)
            forgetAgent()
        case .replaceAgent: replaceAgent()
        case .handOver: if let agent, agent.isAlive, agent.canLeave(self) { agent.handOver(self) }
        case .readPredecessor: agent?.readPredecessor(self)
        case .cutPredecessor(let readable): cutPredecessor(readable)
        case .time: passTime()
        case .rest(let seed): rest(seed)
        }
        if agent?.isAlive == false { forgetAgent() }
    }

    func change(_ change: (inout Desktop) -> Void) {
        let old = desktop
        change(&desktop)
        desktopChanges(from: old)
    }

    func hasEndedOrStopped(_ observer: Int) -> Bool {
        places[observer].hasEnded || processes[places[observer].process].isStopped
    }

    /// A process to which names that were posted while it was not listening are on their way.
    var processBeingHandedNames: Int? {
        places.first { place in
            guard !place.hasEnded, !processes[place.process].isStopped, let connection = place.connection,
                !bus[connection].inbox.isEmpty
            else { return false }
            return bus[connection].inbox.waiting.contains {
                if case .peer(_, .deliver(let serial, _)) = $0 { serial >= 0 } else { false }
            }
        }?.process
    }

    func post(_ poster: Int, _ name: Int) {
        guard posts.count + posters.reduce(0, { $0 + $1.waiting }) < 60 else { return }
        posters[poster].post(name, self)
    }

    /// Whether a signal has the path that a post of its name must have.
    func isPost(_ number: Int) -> Bool {
        mutation == .believesAnyPath || posts[number].path == Subject.paths[posts[number].name]
    }

    func posterName(of post: Int) -> String { bus[posts[post].connection].name }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// An agent, some observers, posters and a bus in one thread: what each does next is decided by whoever calls ``take(_:)``.
package final class World {
    struct Process {
        var isStoppedByOthers = false
        /// By the agent.
        var isFrozen = false
        /// What the agent has noticed.
        var isKnownToStand = false
        var hasEnded = false
        var isStopped: Bool { isStoppedByOthers || isFrozen }
    }

    private struct Request {
        let serial: Int
        let observers: [Int]
        let state: LifecycleState?
    }

    var bus = Bus()
    var processes: [Process]
    var observers: [SimulatedObserver] = []
    private(set) var agent: SimulatedAgent?
    /// An agent that was started and has not yet asked for the name, or one that another has replaced.
    private(set) var others: [SimulatedAgent] = []
    var posts: [Post] = []
    var oracle = Oracle()
    private(set) var clock: Int64 = 0
    private(set) var registrations: [(observer: Int, subject: Int, isCancelled: Bool)] = []
    private var requests: [Request] = []
    private var lastSerial = 0
    private var agents = 0
    private let posters: [Int]
    private let posterNames: [String]
    let setting: Setting
    private let control: Int
    private let encodes: Bool
    let mutation: Mutation?
    private let isNoted: Bool
    private(set) var notes: [String] = []
    package private(set) var steps = 0

    package init(_ setting: Setting, mutation: Mutation? = nil, isNoted: Bool = false) {
        self.mutation = mutation
        self.isNoted = isNoted
        encodes = setting.encodes
        bus.startsAgents = setting.busStartsAgents
        self.setting = setting
        posters = [bus.connect(.poster(0)), bus.connect(.poster(1))]
        posterNames = posters.map { [bus] in bus[$0].name }
        control = bus.connect(.control)
        processes = Array(repeating: Process(), count: (setting.processes.max() ?? 0) + 1)
        oracle.reportedTogether = processes.indices.map { process in
            setting.processes.indices.filter { setting.processes[$0] == process }
        }
        for (number, process) in setting.processes.enumerated() {
            observers.append(SimulatedObserver(number: number, process: process))
            oracle.addObserver()
        }
        for (observer, subject) in setting.registrations { register(observer, subject) }
        if setting.beginsWithAgent { startAgent() }
    }

    /// What there is when a history begins.
    package struct Setting: Sendable {
        /// The process of each observing connection.
        package var processes: [Int]
        package var registrations: [(Int, Int)]
        /// The names that are posted, and the names and prefixes that are observed: few, so that they meet.
        package var names: [Int]
        package var subjects: [Int]
        package var busStartsAgents: Bool
        package var beginsWithAgent: Bool
        /// Above so many prefixes the agent has one rule for all.
        package var prefixRules: Int
        /// Whether messages are written and read on their way.
        package var encodes: Bool
    }

    package var failure: String? { oracle.failure }

    func note(_ text: @autoclosure () -> String) { if isNoted { notes.append(text()) } }

    // MARK: - What can happen

    func hasWork(observer: SimulatedObserver) -> Bool {
        if observer.hasEnded || processes[observer.process].isStopped { return false }
        guard let connection = observer.connection else { return true }
        return !bus[connection].inbox.isEmpty || !bus[connection].isOpen
    }

    /// What is under way: some of it must happen before anything can be at rest.
    func collect(_ enabled: inout [Step]) {
        enabled.removeAll(keepingCapacity: true)
        for index in bus.connections.indices where bus[index].isOpen && !bus[index].outbox.isEmpty {
            enabled.append(.route(index))
        }
        for observer in observers where hasWork(observer: observer) { enabled.append(.observer(observer.number)) }
        if !bus[control].inbox.isEmpty { enabled.append(.control) }
        guard let agent, agent.isAlive else { return }
        if !bus[agent.connection].inbox.isEmpty { enabled.append(.agent) }
        if !agent.news.isEmpty { enabled.append(.news) }
        for place in agent.drains.indices where canRead(agent.drains[place]) { enabled.append(.stream(place)) }
        for process in processes.indices where canNotice(process, agent) { enabled.append(.notice(process)) }
    }

    private func canRead(_ drain: SimulatedAgent.Drain) -> Bool {
        !processes[drain.process].isStopped || !bus[drain.connection].inbox.isEmpty || !bus[drain.connection].isOpen
    }

    private func canNotice(_ process: Int, _ agent: SimulatedAgent) -> Bool {
        let one = processes[process]
        return one.isStoppedByOthers
            ? !one.isKnownToStand && agent.looksAt.contains(process)
            : one.isKnownToStand
    }

    // MARK: - What happens

    package func take(_ step: Step) {
        steps += 1
        if isNoted { notes.append("\(step)") }
        switch step {
        case .route(let index): route(index)
        case .observer(let number):
            if observers.indices.contains(number), hasWork(observer: observers[number]) { observers[number].step(self) }
        case .agent: if let agent, agent.isAlive { agent.step(self) }
        case .control: readAnswer()
        case .news: agent?.takeNews(self)
        case .stream(let place): agent?.readStream(place, self)
        case .notice(let process): notice(process)
        case .post(let poster, let name): post(poster, name)
        case .observe(let observer, let subject): register(observer, subject)
        case .cancel(let registration): cancel(registration)
        case .change(let process, let state, let freezes):
            request(observersOf: process, state) {
                .change($0, .process(Int32(100 + process)), state, freezes: freezes)
            }
        case .changeOne(let observer, let state):
            guard let connection = observers[observer].connection else { return }
            let name = bus[connection].name
            request([observer], state) { .change($0, .connection(name), state, freezes: false) }
        case .release(let process):
            request(observersOf: process, nil) { .release($0, .process(Int32(100 + process))) }
        case .releaseAll: request(Array(observers.indices), nil) { .release($0, nil) }
        case .report(let observer, let state):
            if hasEndedOrStopped(observer) { return }
            observers[observer].report(state, self)
        case .stop(let process, let tears): stop(process, tears: tears)
        case .go(let process): processes[process].isStoppedByOthers = false
        case .kill(let process): kill(process)
        case .cut(let observer, let readable): cut(observer, readable)
        case .startAgent: startAgent()
        case .killAgent: killAgent()
        case .endAgent:
            guard let agent, agent.isAlive else { return }
            oracle.agentDied()
            agent.leave(self)
            forgetAgent()
        case .time: passTime()
        case .rest(let seed): rest(seed)
        }
        if agent?.isAlive == false { forgetAgent() }
    }

    private func hasEndedOrStopped(_ observer: Int) -> Bool {
        observers[observer].hasEnded || processes[observers[observer].process].isStopped
    }

    private func route(_ index: Int) {
        guard bus.connections.indices.contains(index) else { return }
        switch bus.route(index, encodes: encodes) {
        case .nothing: break
        case .routed(let post):
            oracle.routed(post, posts[post])
            noteTwins(posts[post].name)
            checkQueues(posts[post].name)
        case .agentIsToBeStarted: startAgent()
        case .closed: if mutation != .forgetsProcess { agent?.hungUp(index) }
        }
    }

    /// The agent hears for others what stands in the stream of a stopped program.
    private func noteTwins(_ name: Int) {
        guard let agent, (0...Subject.everything).contains(where: { Subject.matches($0, name) && agent.hears($0) })
        else { return }
        for observer in observers where processes[observer.process].isStoppedByOthers {
            guard let connection = observer.connection, bus[connection].isOpen else { continue }
            oracle.standsTwice(name, observer.number)
        }
    }

    /// While a state is in force in which nothing is heard, the bus queues nothing for the program.
    private func checkQueues(_ name: Int) {
        for observer in observers {
            // Nothing is promised to one that has yet to hear its state.
            guard let state = oracle.contracts[observer.number].known, state != .foreground,
                !observer.lifecycle.isEntering,
                let connection = observer.connection, bus[connection].isOpen
            else { continue }
            for subject in 0..<Subject.count where Subject.matches(subject, name) && bus[connection].rules[subject] > 0
            {
                oracle.fail("the bus queues a post for observer \(observer.number), which is in \(state)")
            }
        }
    }

    /// A process that has names on their way to it that were posted while it did not listen.
    var processBeingHandedNames: Int? {
        observers.first { observer in
            guard !hasEndedOrStopped(observer.number), let connection = observer.connection else { return false }
            return bus[connection].inbox.waiting.contains {
                if case .peer(_, .deliver(let serial, _)) = $0 { serial >= 0 } else { false }
            }
        }?.process
    }

    private func post(_ poster: Int, _ name: Int) {
        guard posts.count < 64 else { return }
        posts.append(Post(name: name, poster: poster))
        oracle.posted(Post(name: name, poster: poster))
        bus[posters[poster]].outbox.append(.post(posts.count - 1, name: name))
    }

    func posterName(of post: Int) -> String { posterNames[posts[post].poster] }

    // MARK: - Registrations

    private func register(_ observer: Int, _ subject: Int) {
        let program = observers[observer]
        if program.hasEnded || processes[program.process].isStopped { return }
        // A center whose bus is away refuses.
        if program.connection == nil, !program.subjects.isEmpty, !program.subjects.contains(subject), steps > 0 {
            return
        }
        registrations.append((observer, subject, false))
        oracle.register(observer, subject, unread: unreadPosts)
        let wasActive = program.isActive(subject)
        program.observe(subject, self)
        if wasActive { oracle.confirmed(program, subject) }
    }

    private func cancel(_ number: Int) {
        guard registrations.indices.contains(number), !registrations[number].isCancelled else { return }
        let (observer, subject, _) = registrations[number]
        if hasEndedOrStopped(observer) { return }
        registrations[number].isCancelled = true
        oracle.cancel(number)
        observers[observer].observeNoMore(subject, self)
    }

    // MARK: - Requests

    private func request(observersOf process: Int, _ state: LifecycleState?, _ make: (Int) -> PeerMessage) {
        request(oracle.reportedTogether[process], state, make)
    }

    private func request(_ observers: [Int], _ state: LifecycleState?, _ make: (Int) -> PeerMessage) {
        guard let agent = bus.agent else { return }
        lastSerial += 1
        // Its process may be meant as well.
        requests.append(Request(serial: lastSerial, observers: observers, state: state))
        for observer in observers { oracle.changeBegins(observer, state) }
        bus[control].outbox.append(.send(to: bus[agent].name, make(lastSerial)))
    }

    private func readAnswer() {
        guard let message = bus[control].inbox.popFirst() else { return }
        switch message {
        case .peer(_, .done(let serial)): requestEnded(serial, isDone: true)
        case .peer(_, .refused(let serial)), .failed(let serial): requestEnded(serial, isDone: false)
        default: break
        }
    }

    private func requestEnded(_ serial: Int, isDone: Bool) {
        guard let place = requests.firstIndex(where: { $0.serial == serial }) else {
            return oracle.fail("request \(serial) is answered twice")
        }
        let request = requests.remove(at: place)
        note("request \(serial) is \(isDone ? "in force" : "refused")")
        for observer in request.observers { oracle.changeEnded(observer, request.state, isDone: isDone) }
    }

    // MARK: - Processes

    private func stop(_ process: Int, tears: Bool) {
        guard !processes[process].isStopped, !processes[process].hasEnded else { return }
        processes[process].isStoppedByOthers = true
        let posts = unreadPosts
        for observer in observers where observer.process == process && !observer.hasEnded {
            if let connection = observer.connection {
                for case .post(let post) in bus[connection].inbox.waiting where posts >> UInt64(post) & 1 == 1 {
                    oracle.standsTwice(self.posts[post].name, observer.number)
                }
            }
            oracle.processStopped(observer.number, knows: namesKnown(of: observer), unread: posts)
            if tears, let connection = observer.connection { bus[connection].isTorn = true }
        }
    }

    /// Posts that the agent was sent and has not taken note of, a bit each.
    private var unreadPosts: UInt64 {
        guard let agent else { return 0 }
        return bus[agent.connection].inbox.waiting.reduce(into: agent.senders.posts) { posts, message in
            if case .post(let post) = message { posts |= 1 << UInt64(post) }
        }
    }

    /// What the agent has heard that an observer observes.
    private func namesKnown(of observer: SimulatedObserver) -> [Int] {
        guard let agent, let connection = observer.connection,
            let id = agent.coordinator.id(of: bus[connection].name), let subjects = agent.coordinator.subjects(of: id)
        else { return [] }
        return (0..<Subject.count).filter { subject in
            Subject.isPrefix(subject)
                ? subjects.prefixes.contains(Subject.prefixes[subject - Subject.nameCount])
                : subjects.names.contains(Subject.names[subject])
        }
    }

    private func notice(_ process: Int) {
        guard let agent, agent.isAlive, canNotice(process, agent) else { return }
        processes[process].isKnownToStand = processes[process].isStoppedByOthers
        let id = SimulatedAgent.process(process)
        agent.news.append(processes[process].isStoppedByOthers ? .processStopped(id) : .processContinued(id))
    }

    private func kill(_ process: Int) {
        guard !processes[process].hasEnded else { return }
        processes[process].hasEnded = true
        processes[process].isStoppedByOthers = false
        for observer in observers where observer.process == process {
            observer.end(self)
            for number in registrations.indices where registrations[number].observer == observer.number {
                registrations[number].isCancelled = true
                oracle.cancel(number)
            }
        }
        if mutation != .forgetsProcess { agent?.news.append(.processEnded(SimulatedAgent.process(process))) }
    }

    /// The bus ends a connection: it has read too slowly.
    private func cut(_ observer: Int, _ readable: Int) {
        guard let connection = observers[observer].connection, bus[connection].isOpen else { return }
        oracle.connectionLost(observer)
        bus.disconnect(connection, readable: readable)
        agent?.hungUp(connection)
    }

    /// A program has closed its connection.
    func closed(_ index: Int) { agent?.hungUp(index) }

    /// Somebody shuts the socket of a connection down.
    func close(_ index: Int) { bus.disconnect(index) }

    // MARK: - Agents

    private func startAgent() {
        let connection = bus.connect(.agent(agents))
        let new = SimulatedAgent(number: agents, connection: connection, prefixRules: setting.prefixRules)
        agents += 1
        if let agent, agent.isAlive {
            oracle.agentDied()
            agent.leave(self)
            forgetAgent()
        }
        agent = new
        bus[connection].outbox.append(.requestName)
    }

    private func killAgent() {
        guard let agent, agent.isAlive else { return }
        oracle.agentDied()
        agent.end(self)
        forgetAgent()
    }

    private func forgetAgent() {
        agent = nil
        for process in processes.indices {
            processes[process].isKnownToStand = false
            // Nobody else would know that it is to go on, but for somebody who says so.
            if processes[process].isFrozen {
                processes[process].isFrozen = false
                processes[process].isStoppedByOthers = true
            }
        }
    }

    // MARK: - Time

    private var nextMoment: Int64? {
        var moments = observers.filter { !$0.hasEnded && !processes[$0.process].isStopped }.compactMap(\.deadline)
        if let alarm = agent?.alarm { moments.append(alarm) }
        return moments.min()
    }

    private func passTime() {
        guard let moment = nextMoment else { return }
        clock = max(clock, moment)
        for observer in observers where !observer.hasEnded && !processes[observer.process].isStopped {
            if let deadline = observer.deadline, deadline <= clock { observer.deadlineHasPassed(self) }
        }
        if let agent, let alarm = agent.alarm, alarm <= clock { agent.alarmHasCome(self) }
    }

    // MARK: - Rest

    private func rest(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var enabled: [Step] = []
        var left = 4_000
        for process in processes.indices { processes[process].isStoppedByOthers = false }
        while left > 0, oracle.failure == nil {
            left -= 1
            collect(&enabled)
            if !enabled.isEmpty {
                take(enabled[random.below(enabled.count)])
            } else if nextMoment != nil {
                take(.time)
            } else {
                break
            }
        }
        if left == 0 { oracle.fail("it never comes to rest") }
        if oracle.failure == nil { check() }
    }

    private func check() {
        if !requests.isEmpty { oracle.fail("request \(requests[0].serial) is not answered") }
        let living = observers.filter { !$0.hasEnded && !standsStill($0) }
        oracle.rest(living, hasAgent: agent != nil)
        for observer in living {
            guard let connection = observer.connection else {
                oracle.fail("observer \(observer.number) stays away")
                continue
            }
            for subject in 0..<Subject.count {
                let expected = observer.wantedRules.contains(subject) ? 1 : 0
                if bus[connection].rules[subject] != expected {
                    oracle.fail(
                        "observer \(observer.number), in \(observer.lifecycle.state), has \(bus[connection].rules[subject])"
                            + " rules of \(Subject.texts[subject]) on the bus"
                    )
                }
            }
            if agent == nil, observer.lifecycle.state != .foreground, !processes[observer.process].isStopped {
                oracle.fail("observer \(observer.number) stays \(observer.lifecycle.state) without an agent")
            }
        }
        checkAgent(living)
    }

    /// Whether the agent has stopped the process of an observer, which cannot know what it is in then.
    private func standsStill(_ observer: SimulatedObserver) -> Bool { processes[observer.process].isFrozen }

    private func checkAgent(_ living: [SimulatedObserver]) {
        guard let agent else { return }
        let coordinator = agent.coordinator
        var held = Set<Int>()
        for observer in living {
            guard let connection = observer.connection else { continue }
            guard let id = coordinator.id(of: bus[connection].name), let entry = coordinator.entry(of: id) else {
                oracle.fail("the agent does not know observer \(observer.number)")
                continue
            }
            if entry.state != observer.lifecycle.state {
                oracle.fail(
                    "the agent believes observer \(observer.number) to be in \(entry.state); it is in "
                        + "\(observer.lifecycle.state)"
                )
            }
            if entry.isParked { oracle.fail("observer \(observer.number) runs and is parked") }
            if entry.pending > entry.subjects.names.count, entry.subjects.prefixes.isEmpty {
                oracle.fail("observer \(observer.number) has more names pending than it observes")
            }
            if entry.state == .suspended { held.formUnion(observer.subjects) }
        }
        for observer in observers where !observer.hasEnded && standsStill(observer) {
            for id in coordinator.connections(of: SimulatedAgent.process(observer.process)) {
                guard let state = coordinator.entry(of: id)?.state, state != .suspended else { continue }
                oracle.fail("process \(observer.process) stands still in the \(state)")
            }
        }
        // What the agent keeps for one that stands still depends on whether it was parked.
        guard living.count == observers.count(where: { !$0.hasEnded }) else { return }
        if coordinator.totals.observers != living.count {
            oracle.fail("the agent knows \(coordinator.totals.observers) connections, and there are \(living.count)")
        }
        if coordinator.totals.held != held.count {
            oracle.fail("the agent holds \(coordinator.totals.held) names, and \(held.count) are to be held")
        }
    }
}

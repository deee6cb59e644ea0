// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
package import NotifyCore
import NotifyNames

/// The lifecycle agent as a whole: the frontend brings in calls, the identity says who made them, the coordinator decides
/// what to do, and the parts do it.
package final class Agent: BusPeer {
    /// How long sources continue once nobody observes any more, in milliseconds.
    private static let lingering: Int64 = 10_000

    let loop: EventLoop
    let link: BusLink
    let configuration: Configuration
    let logger: Logger
    let started = WallClock.now
    let frontend: Frontend
    let identity: Identity
    let processes: ProcessTable
    let sockets: Sockets
    let ends: EndWatch
    let sources: SourceSet
    let eventPart: EventPart
    /// Services on the agent's bus.
    let session: ServiceRouter
    let relaying: Relaying
    var alarms: Alarms
    var loginEvents = LoginEvents()
    /// Whether there is a screen saver that says whether it is active.
    var hasScreenSaver = false
    var sleepDelay: SleepDelay?
    /// Posts that wait for state changes, in order.
    var waiting: [(number: UInt64, changes: [EventChange])] = []
    var lastWait: UInt64 = 0
    private let watcher: Watcher
    /// Whether the sources that decide about programs work, and when they rest.
    private var isDeciding = false
    private var restTimer: Int?
    /// What is started for names; set once the agent owns its name.
    private(set) var launching: Launching?
    private let launchFolders: LaunchFolders
    private let launchWatch: LaunchWatch
    private let report: @Sendable (Report) -> Void
    private(set) var coordinator: Coordinator
    /// The calls that wait for their turn.
    let intake: Intake
    private(set) var uniqueName = ""
    /// Whether another agent has taken over the name.
    private(set) var wasReplaced = false
    /// Events that come while effects are being carried out are handled after them.
    private var events: [Event] = []
    private var isBusy = false

    /// - Parameter loop: of the thread on which everything of the agent lives.
    init(
        _ configuration: Configuration,
        bus: NotifyCenter.Bus,
        logger: Logger,
        on loop: EventLoop,
        report: @escaping @Sendable (Report) -> Void
    ) throws(NotifyBusError) {
        /// The agent, once it exists.
        final class Later { weak var agent: Agent? }
        let me = Later()
        let servesMachine = bus == .system
        self.configuration = configuration
        self.logger = logger
        self.loop = loop
        self.report = report
        let link = BusLink(bus: bus)
        self.link = link
        let watcher = try Watcher(on: loop)
        self.watcher = watcher
        frontend = Frontend(link)
        ends = EndWatch(link)
        identity = Identity(link, servesMachine: servesMachine)
        intake = Intake(link, configuration.quotas)
        processes = ProcessTable(watcher: watcher, logger: logger)
        sockets = Sockets(watcher: watcher)
        alarms = Alarms(on: loop) { me.agent?.alarmRings() }
        relaying = Relaying(bus: bus, link, on: loop, rules: configuration.relay, quotas: configuration.quotas)
        session = ServiceRouter(link, on: loop)
        let environment = SourceEnvironment(
            link: link,
            session: session,
            machine: MachineServices(on: loop),
            servesMachine: servesMachine
        )
        let list = SourceList(configuration, in: environment)
        sources = SourceSet(
            list.makers,
            deciding: list.deciding,
            on: loop,
            board: FactBoard(on: loop) { _ in me.agent?.applyNews() },
            reset: { source, condition in me.agent?.sourceWasReset(source, condition) },
            deliver: { source, report in me.agent?.handle(EventTable.Input.reported(source, report)) }
        )
        let events = EventPart(list, sources)
        eventPart = events
        launchFolders = LaunchFolders(servesMachine: servesMachine)
        launchWatch = LaunchWatch(launchFolders, on: loop) { me.agent?.loadLaunches() }
        var plan = Coordinator.Configuration()
        plan.exemptApplications = configuration.exemptApplications
        plan.facts = configuration.facts
        plan.quotas = configuration.quotas
        plan.user = geteuid()
        plan.sources = list.deciding + [Coordinator.freezerSource].filter { !plan.facts.ignoredSources.contains($0) }
        plan.untouchables = [1, ProcessHandle.own]
        plan.reservesNames = servesMachine
        plan.interests = events.names
        plan.events = events.names.subtracting(configuration.files.map(\.name))
        plan.pinnedStates = configuration.pinnedStates
        coordinator = Coordinator(plan)
        me.agent = self
        (watcher.delegate, relaying.agent) = (self, self)
        sources.begin()
        sources.want(ShellSource.name, by: .agent)
        let hasCgroups = CgroupMount.unified != nil
        let noCgroups = "cgroup version 2 is not mounted; processes stopped by a signal are noticed anyway"
        sourceWasReset(Coordinator.freezerSource, hasCgroups ? .live : .off(noCgroups))
        frontend.answerRelayed = { [unowned self] call, answer in
            let process = coordinator.id(of: call.sender).flatMap { coordinator.process(of: $0) }
            relaying.answer(call, answer, process: process)
        }
        link.peer = self
    }

    /// Connects, and serves once the bus has granted the name.
    func open() {
        loop.add(link)
        link.open()
    }

    // MARK: - Events

    /// Passes an event to the coordinator, and carries out the effects.
    func handle(_ event: Event) {
        events.append(event)
        guard !isBusy else { return }
        isBusy = true
        defer { isBusy = false }
        while !events.isEmpty {
            let event = events.removeFirst()
            for effect in coordinator.handle(event, at: .now) { perform(effect) }
        }
    }

    private func observersHaveCome() {
        loop.cancel(restTimer)
        restTimer = nil
        guard !isDeciding else { return }
        isDeciding = true
        sources.decide()
        sources.source(ShellSource.self)?.ask()
    }

    private func observersHaveGone() {
        loop.cancel(restTimer)
        restTimer = loop.after(Agent.lingering) { [unowned self] in
            guard !coordinator.hasObservers else { return }
            isDeciding = false
            sources.rest()
        }
    }

    /// Nothing that a source has reported counts any more. This changes nothing by itself.
    private func sourceWasReset(_ source: String, _ condition: SourceCondition?) {
        _ = coordinator.handle(.sourceWasReset(source, condition), at: .now)
        if source == "logind", condition != nil { loginEvents.rest() }
    }

    // MARK: - Programs started for names

    /// Rereads the files of `launch.d`.
    func loadLaunches() {
        guard !uniqueName.isEmpty else { return }
        launchWatch.begin()
        let launching = launching ?? makeLaunching()
        self.launching = launching
        launching.load()
        // The launcher hears the names itself, as it must know who posted. This only records that they are wanted.
        handle(.agentObserves(launching.subjects))
    }

    private func makeLaunching() -> Launching {
        let environment = Launching.Environment(
            identity: identity,
            process: { [unowned self] id in coordinator.process(of: id).flatMap { processes[$0] } },
            connections: { [unowned self] in coordinator.list.map(\.id) },
            subjects: { [unowned self] id in coordinator.subjects(of: id) },
            // The coordinator decides what that means for states.
            deliver: { [unowned self] id, names in handle(.found(id, names)) },
            alarm: { [unowned self] time in alarms.set(.launching, at: time) },
            workHasEnded: { [unowned self] in endDelayIfOver() },
            warn: { [logger] text in logger.warning(text) }
        )
        return Launching(link, servesMachine: identity.servesMachine, launchFolders, environment)
    }

    // MARK: - The connection

    /// When the bus is gone, the manager of the agent restarts it.
    package var keepsConnection: Bool { false }

    /// Observers pass duplicates of their sockets.
    package var takesDescriptors: Bool { true }

    /// While calls wait there is no sleep, and the socket is read between two slices of them.
    package var deadline: MonotonicTime? {
        intake.isEmpty ? nil : MonotonicTime(nanoseconds: 0)
    }

    package func deadlineHasPassed() { serve() }

    package func hasReplied(to caller: String, bytes: Int) {
        intake.hasReplied(to: caller, bytes: bytes)
    }

    /// A bus that accepts nothing for that long has stopped, or counts so much as under way from the agent that it no
    /// longer reads from it. Then nobody is served. A new agent has a new connection, with which observers register again.
    package var stallLimit: Int64? { 10_000 }

    package func linkIsReady(_ link: BusLink) {
        session.linkIsReady()
        // ALLOW_REPLACEMENT, DO_NOT_QUEUE, REPLACE_EXISTING
        let flags: UInt32 = 1 | 4 | (configuration.replaces ? 2 : 0)
        link.callBus("RequestName", [.string(AgentInterface.name), .uint32(flags)]) { [self] answer in
            switch answer {
            case .failure(let fault): report(.refused(fault.message))
            case .success(let values):
                // PRIMARY_OWNER, ALREADY_OWNER
                guard let code = values.first?.uint32, code == 1 || code == 4 else { return nameIsTaken() }
                uniqueName = link.uniqueName
                logger.debug("acquired the bus name", metadata: ["connection": "\(uniqueName)"])
                loadLaunches()
                report(.ready)
            }
        }
    }

    package func linkIsLost(_ error: NotifyBusError) {
        report(.busIsLost(error))
    }

    private func nameIsTaken() {
        link.callBus("GetConnectionUnixProcessID", [.string(AgentInterface.name)]) { [report] answer in
            let owner: UInt32? = if case .success(let values) = answer { values.first?.uint32 } else { nil }
            report(.nameIsTaken(owner: owner))
        }
    }

    package func handle(_ signal: BusSignal) {
        signal.arguments.closeDescriptors()
        launching?.handle(signal)
        session.handle(signal)
        if let change = OwnerChange(signal) {
            guard change.owner.isEmpty else { return }
            if let id = coordinator.id(of: change.name), ends.watches(id) { handle(.connectionEnded(id)) }
        } else if signal.sender == "org.freedesktop.DBus", signal.member == "NameLost", !uniqueName.isEmpty,
            signal.arguments.compactMap(\.string) == [AgentInterface.name]
        {
            // From now on observers obey the other agent, to which whoever waits for this one must turn.
            wasReplaced = true
            frontend.refuseAll(.replaced)
            report(.wasReplaced)
        }
    }

    package func handle(post name: NotifyName) {
        handle(.posted(name))
    }

    // MARK: - Time and facts

    private func alarmRings() {
        for owner in alarms.take(now: MonotonicTime.now.nanoseconds) {
            switch owner {
            case .coordinator: handle(Event.alarm)
            case .events: handle(EventTable.Input.alarm)
            case .sleep: endDelayIfOver()
            case .launching: launching?.alarmHasCome()
            case .relaying: relaying.restIfNobodyNeedsIt()
            }
        }
    }

    /// Handles what the sources have put on the board.
    private func applyNews() {
        let began = MonotonicTime.now.nanoseconds
        let news = sources.board.take()
        let later = applyFacts(news)
        handle(.news(news))
        postAfterChanges(later)
        sources.board.rest(after: MonotonicTime.now.nanoseconds - began)
    }

    // MARK: - The end

    /// Lets everything continue that the agent has stopped.
    ///
    /// - Parameter completion: called once the bus has seen to everything.
    func end(then completion: @escaping () -> Void) {
        sources.end()
        handle(Event.ending)
        relaying.close()
        link.callBus("GetId", []) { _ in completion() }
    }
}

/// Carrying out what the coordinator has decided.
extension Agent {
    func perform(_ effect: Effect) {
        switch effect {
        case .answer(let call, let answer): frontend.answer(call, answer)
        case .refuse(let call, let refusal): frontend.refuse(call, refusal)
        case .tell(let id, let state, let additions, let marks): tell(id, state, additions, marks: marks)
        case .deliver(let id, let names):
            if coordinator.isRelayed(id) {
                deliverRelayed(names, to: id)
            } else if let name = coordinator.name(of: id) {
                frontend.deliver(names, to: name) { [self] in handle(.delivered(id)) }
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
            frontend.announce(change)
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
        case .observersCome: observersHaveCome()
        case .observersHaveGone: observersHaveGone()
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
        frontend.tell(name, message) { [self] reply in
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
        frontend.mark(name, id.number)
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

extension Agent: LoopTenant {
    package func loopHasEnded() {
        watcher.end()
        link.end()
    }
}

extension Agent: WatcherDelegate {
    func processHasEnded(_ number: UInt64) {
        if let process = processes[number: number] { handle(.processEnded(process)) }
    }

    func process(_ number: UInt64, isStopped: Bool) {
        guard let process = processes[number: number] else { return }
        handle(isStopped ? .processStopped(process) : .processContinued(process))
    }

    func processHasMoved(_ number: UInt64) {
        if let process = processes[number: number], let facts = coordinator.facts(of: process) {
            sources.present(facts)
        }
    }

    func connectionHasHungUp(_ number: UInt64) { handle(.connectionEnded(ConnectionID(number))) }

    func streamIsDrained(_ number: UInt64, _ outcome: ParkedStream.Outcome) {
        // The names that these posts were sent for have then been taken note of.
        link.callBus("GetId", []) { [self] _ in
            streamIsRead(ConnectionID(number), outcome, outcome.owned.keys.sorted()[...])
        }
    }
}

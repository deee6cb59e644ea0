// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
package import NotifyCore
import NotifyNames

/// The lifecycle agent as a whole: the intake brings in calls, the identity says who made them, the coordinator decides
/// what to do, and the parts do it.
package final class Agent: CallHandler, PostListener {
    /// How far it is.
    enum Phase: Comparable {
        case connecting
        /// It has asked for the bus name: from now on it is the agent for all programs.
        case requestingName
        /// It knows what the agent before it knew, and answers calls.
        case serving
    }

    let loop: EventLoop
    /// What hears names for the agent, and for the launcher.
    package let receiver: Receiver
    var link: BusLink { receiver.link }
    let configuration: Configuration
    let logger: Logger
    let started = WallClock.now
    var openCalls = OpenCalls()
    package let identity: Identity
    let processes: ProcessTable
    let watchdogs: Watchdogs
    let programs: ProgramFreezer
    let uses: UseWatch
    let sockets: Sockets
    let ends: EndWatch
    let sources: SourceSet
    /// Services on the agent's bus.
    let session: ServiceRouter
    let relaying: Relaying
    var alarms: Alarms
    /// Names of the machine and the session.
    var events: AgentEvents
    let watcher: Watcher
    /// What is started for names; set once the agent owns its name.
    var launching: Launching?
    private let report: @Sendable (Report) -> Void
    var coordinator: Coordinator
    let pump = Pump<Event>()
    /// The calls that wait for their turn.
    package let intake: Intake
    private(set) var phase = Phase.connecting
    package var mayBegin: Bool { phase == .serving }
    package var mayBeginAtOnce: Bool { mayBegin && intake.hasTime }
    /// Whether this agent ends, or another one has taken over the name: it begins nothing any more.
    var isOver = false
    var inheritance = Inheritance.none
    var handingOver = HandingOver()

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
        receiver = Receiver(link)
        let watcher = try Watcher(on: loop)
        self.watcher = watcher
        ends = EndWatch(link)
        identity = Identity(link, servesMachine: servesMachine)
        intake = Intake(link, configuration.quotas)
        let thawGuard = ThawGuard(configuration.ownProgram, servesMachine: servesMachine, on: loop)
        processes = ProcessTable(watcher: watcher, thawGuard, logger: logger)
        watchdogs = Watchdogs(link, on: loop, servesMachine: servesMachine)
        programs = ProgramFreezer(thawGuard, watchdogs, logger: logger)
        sockets = Sockets(watcher: watcher)
        alarms = Alarms(on: loop) { me.agent?.alarmRings() }
        relaying = Relaying(bus: bus, link, on: loop, rules: configuration.relay, quotas: configuration.quotas)
        session = ServiceRouter(link, on: loop)
        let environment = SourceEnvironment(
            link: link,
            session: session,
            machine: MachineServices(on: loop),
            servesMachine: servesMachine,
            seesFullscreen: configuration.naps.contains { $0.keeps.contains(.fullscreen) }
        )
        uses = UseWatch(on: loop, environment) { uses, question in
            me.agent?.handle(.areUsed(uses, question: question))
        }
        let list = SourceList(configuration, in: environment)
        sources = SourceSet(
            list.makers,
            deciding: list.deciding,
            on: loop,
            board: FactBoard(on: loop) { me.agent?.applyNews() },
            reset: { source, condition in me.agent?.sourceWasReset(source, condition) },
            deliver: { source, report in me.agent?.handle(EventTable.Input.reported(source, report)) }
        )
        events = AgentEvents(list)
        var plan = Coordinator.Configuration()
        plan.exemptApplications = configuration.exemptApplications
        plan.facts = configuration.facts
        plan.quotas = configuration.quotas
        plan.user = geteuid()
        plan.sources = list.deciding + [Coordinator.freezerSource].filter { !plan.facts.ignoredSources.contains($0) }
        plan.untouchables = [1, ProcessHandle.own]
        plan.reservesNames = servesMachine
        plan.interests = Set(list.names.keys)
        plan.events = plan.interests.subtracting(configuration.files.map(\.name))
        plan.pinnedStates = configuration.pinnedStates
        plan.naps = configuration.naps
        plan.powerName = PowerState.percent
        coordinator = Coordinator(plan)
        me.agent = self
        (watcher.delegate, relaying.agent) = (self, self)
        thawGuard.isToEnd = { me.agent?.isToEnd($0) }
        sources.begin()
        sources.want(ShellSource.name, by: .agent)
        let hasCgroups = CgroupMount.unified != nil
        let noCgroups = "cgroup version 2 is not mounted; processes stopped by a signal are noticed anyway"
        sourceWasReset(Coordinator.freezerSource, hasCgroups ? .live : .off(noCgroups))
        link.peer = self
    }

    /// Connects, and serves once the bus has granted the name.
    func open() {
        loop.add(receiver)
        link.open()
    }

    // MARK: - Observers and sources

    /// Programs nap whether or not there are observers.
    private func followFocus() {
        for name in DecidingSource.ofFocus { sources.want(name, by: .agent) }
        sources.source(ShellSource.self)?.ask()
    }

    /// Nothing that a source has reported counts any more.
    private func sourceWasReset(_ source: String, _ condition: SourceCondition?) {
        handle(.sourceWasReset(source, condition))
        if source == "logind", condition != nil { events.logins.rest() }
    }

    // MARK: - Programs started for names

    /// Rereads the files of `launch.d`.
    func loadLaunches() {
        guard mayBegin else { return }
        let launching = launching ?? makeLaunching()
        self.launching = launching
        launching.load()
        // The launcher hears the names itself, as it must know who posted. This only records that they are wanted.
        handle(.agentObserves(launching.wanted))
        launching.statesHaveChanged()
    }

    func makeLaunching() -> Launching {
        let environment = Launching.Environment(
            identity: identity,
            process: { [unowned self] id in coordinator.process(of: id).flatMap { processes[$0] } },
            // What is behind the relay is confined, and counts for no entry.
            connections: { [unowned self] in coordinator.list.map(\.id).filter { !coordinator.isRelayed($0) } },
            subjects: { [unowned self] id in coordinator.subjects(of: id) },
            // The coordinator decides what that means for states.
            deliver: { [unowned self] id, names in handle(.missed(id, names)) },
            alarm: { [unowned self] time in alarms.set(.launching, at: time) },
            isOver: { [unowned self] in isOver },
            workHasEnded: { [unowned self] in endDelayIfOver() },
            filesHaveChanged: { [unowned self] in loadLaunches() },
            state: { [unowned self] name in coordinator.knownState(of: name) },
            warn: { [logger] text in logger.warning(text) }
        )
        return Launching(receiver, session, servesMachine: identity.servesMachine, on: loop, environment)
    }

    // MARK: - The connection

    /// When the bus is gone, the manager of the agent restarts it.
    package var keepsConnection: Bool { false }

    /// Observers pass duplicates of their sockets.
    package var takesDescriptors: Bool { true }

    /// While calls wait there is no sleep, and the socket is read between two slices of them.
    package var deadline: MonotonicTime? { intake.deadline(mayBegin: mayBegin) }

    /// A bus that keeps too much for a connection leaves out signals, and so connections that left meanwhile would stay
    /// known.
    package func hasReadMuch() {
        link.callBus("ListNames", []) { [self] answer in
            guard case .success(let values) = answer, let names = values.first?.elements else { return }
            let present = Set(names.compactMap(\.string))
            for (id, name) in coordinator.connectionNames where ends.watches(id) && !present.contains(name) {
                handle(.connectionEnded(id))
            }
        }
    }

    package func deadlineHasPassed() { serve() }

    package func linkIsReady(_ link: BusLink) {
        // The bus's facts about a process could not be compared with those in /proc.
        guard link.hasConfirmedUser else {
            let reason = "The agent is in another user namespace than the bus, so it can't tell whose programs it sees."
            return report(.busIsLost(NotifyBusError(.failed, reason)))
        }
        session.linkIsReady()
        inheritIfPossible { [self] in requestName() }
    }

    func requestName() {
        if isOver { return }
        phase = .requestingName
        // ALLOW_REPLACEMENT, DO_NOT_QUEUE, REPLACE_EXISTING
        let flags: UInt32 = 1 | 4 | (configuration.replaces || inheritance.isLeft ? 2 : 0)
        link.callBus("RequestName", [.string(AgentInterface.name), .uint32(flags)]) { [self] answer in
            switch answer {
            case .failure(let fault): report(.refused(fault.message))
            case .success(let values):
                // PRIMARY_OWNER, ALREADY_OWNER
                guard let code = values.first?.uint32, code == 1 || code == 4 else { return nameIsTaken() }
                logger.debug("acquired the bus name", metadata: ["connection": "\(link.uniqueName)"])
                readPredecessor { [self] in beginToServe() }
            }
        }
    }

    private func beginToServe() {
        phase = .serving
        thawAbandoned()
        loadLaunches()
        if !configuration.naps.isEmpty { followFocus() }
        report(.ready)
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
        session.handle(signal)
        if let stopped = sources.source(LomiriSource.self)?.handle(signal), !stopped.isEmpty {
            processes.look(at: stopped)
        }
        if let change = OwnerChange(signal) {
            guard change.owner.isEmpty else { return }
            for id in [coordinator.id(of: change.name), coordinator.interimID(of: change.name)] {
                if let id, ends.watches(id) { handle(.connectionEnded(id)) }
            }
        } else if signal.sender == "org.freedesktop.DBus", signal.member == "NameLost",
            signal.arguments.compactMap(\.string) == [AgentInterface.name]
        {
            isReplaced()
        }
    }

    /// The agent before this one takes its time, and not the bus.
    func predecessorAnswers() { report(.predecessorAnswers) }

    /// From now on observers obey the other agent, to which all that wait for this one must turn.
    func isReplaced() {
        isOver = true
        for call in openCalls.takeAll() { answer(call, .failure(.replaced)) }
        relaying.awaitSuccessor { [report] in report(.wasReplaced) }
    }

    package func handle(post name: NotifyName, from sender: String) {
        handle(.posted(name))
    }

    // MARK: - Time and facts

    private func alarmRings() {
        for owner in alarms.take(now: MonotonicTime.now.nanoseconds) {
            switch owner {
            case .coordinator: handle(Event.alarm)
            case .naps: handle(Event.napAlarm)
            case .events: handle(EventTable.Input.alarm)
            case .sleep: endDelayIfOver()
            case .launching: launching?.alarmHasCome()
            case .relaying: relaying.restIfNobodyNeedsIt()
            }
        }
    }

    /// Handles what the sources have put on the board.
    private func applyNews() {
        sources.board.look { news in
            let later = applyFacts(news)
            applyFocus(news)
            handle(.news(news))
            postAfterChanges(later)
        }
    }

    // MARK: - The end

    /// Lets everything continue that the agent has stopped.
    ///
    /// - Parameter completion: called once the bus has seen to everything.
    func end(then completion: @escaping () -> Void) {
        if handingOver.stage == .done { return completion() }
        end(keeping: [])
        link.callBus("GetId", []) { _ in completion() }
    }

    /// - Parameter kept: processes that stay stopped.
    func end(keeping kept: Set<ProcessID>) {
        isOver = true
        sources.end()
        handle(Event.ending(keeping: kept))
        if handingOver.stage == .done { relaying.retire() } else { relaying.close() }
    }
}

extension Agent: LoopTenant {
    package func loopHasEnded() {
        watcher.end()
        link.end()
    }
}

extension Agent: WatcherDelegate {
    func processHasEnded(_ process: ProcessID) { handle(.processEnded(process)) }

    func process(_ process: ProcessID, isStopped: Bool) {
        handle(isStopped ? .processStopped(process) : .processContinued(process))
    }

    func processHasMoved(_ process: ProcessID) {
        if let facts = coordinator.facts(of: process) { sources.present(facts) }
    }

    func connectionHasHungUp(_ connection: ConnectionID) { handle(.connectionEnded(connection)) }

    func streamIsDrained(_ connection: ConnectionID, _ stream: ParkedStream) {
        guard connection == Predecessor.id, let launching else { return streamHasEnded(connection, stream.finish()) }
        launching.streamIsRead { [self] in streamHasEnded(connection, stream.finish()) }
    }

    private func streamHasEnded(_ connection: ConnectionID, _ outcome: ParkedStream.Outcome) {
        // The names that these posts were sent for have then been taken note of.
        link.callBus("GetId", []) { [self] _ in
            link.verify(outcome, outcome.owned.keys.sorted()[...]) { [self] verified in
                if connection == Predecessor.id { return predecessorIsRead(outcome, verified) }
                streamIsRead(connection, outcome, verified)
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCoordinator
package import NotifyCore
import NotifyEvents
import NotifyNames

/// The lifecycle agent as a whole: the face brings in calls, the identity says who made them, the coordinator decides
/// what to do, and the parts do it.
///
/// `@unchecked Sendable`: everything in it is touched only by the thread that reads the center's observing connection.
package final class Agent: BusPeer, @unchecked Sendable {
    /// What is reported to the program that runs the agent.
    package enum Report: Sendable {
        /// The agent owns its name.
        case ready
        /// Another agent owns the name.
        case nameIsTaken(owner: UInt32?)
        /// Another agent has taken over the name.
        case wasReplaced
        case refused(String)
        case busIsLost(NotifyBusError)
    }

    package struct Configuration: Sendable {
        /// Applications that stay in the foreground.
        package var exemptApplications: Set<String> = []
        /// Which facts may put which programs in the background.
        package var facts = FactPolicy()
        /// How much of the agent's resources one user may use.
        package var quotas = Quotas()
        /// What is wrong with the settings, and so without effect: a sentence for each line, for Status.
        package var faults: [String] = []
        /// The program's version, for Status.
        package var version = ""
        /// Whether events of the machine and the session are posted.
        package var postsEvents = true
        /// Names to post when a file changes.
        package var files: [(name: NotifyName, path: String)] = []
        /// Names whose state is kept even if nobody observes them, and their initial states.
        package var pinnedStates: [NotifyName: UInt64] = [:]
        /// What programs in sandboxes may hear by the relay; nil if there is to be none.
        package var relay: RelayRules? = RelayRules()
        /// Whether to take over the name from another agent.
        package var replaces = false

        package init() {}
    }

    /// How long sources continue once nobody observes any more, in nanoseconds.
    private static let lingering: Int64 = 10_000_000_000

    let configuration: Configuration
    let logger: Logger
    let started = WallClock.now
    let face = Face()
    let identity: Identity
    let processes: ProcessTable
    let sockets: Sockets
    let ends = EndWatch()
    let sources: SourceSet
    let eventPart: EventPart
    let session: SessionServices
    private(set) lazy var screenSavers = makeScreenSavers()
    let relaying: Relaying
    var alarms: Alarms
    var loginEvents = LoginEvents()
    var sleepDelay: SleepDelay?
    /// Posts that wait for state changes, in order.
    var waiting: [(number: UInt64, changes: [EventChange])] = []
    var lastWait: UInt64 = 0
    private let watcher: Watcher
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

    init(
        _ configuration: Configuration,
        bus: NotifyCenter.Bus,
        logger: Logger,
        watcher: Watcher,
        sources: SourceSet,
        events: EventPart,
        session: SessionServices,
        launches: (LaunchFolders, LaunchWatch),
        thread: DeferredCall<AgentWork>,
        report: @escaping @Sendable (Report) -> Void
    ) {
        self.configuration = configuration
        self.logger = logger
        self.watcher = watcher
        self.sources = sources
        eventPart = events
        self.session = session
        alarms = Alarms(watcher)
        (launchFolders, launchWatch) = launches
        self.report = report
        identity = Identity(bus: bus)
        intake = Intake(configuration.quotas)
        relaying = Relaying(bus: bus, rules: configuration.relay, quotas: configuration.quotas, thread: thread)
        processes = ProcessTable(watcher: watcher, logger: logger)
        sockets = Sockets(watcher: watcher)
        var plan = Coordinator.Configuration()
        plan.exemptApplications = configuration.exemptApplications
        plan.facts = configuration.facts
        plan.quotas = configuration.quotas
        plan.user = geteuid()
        plan.sources = sources.names
        plan.untouchables = [1, ProcessHandle.own]
        plan.reservesNames = bus == .system
        plan.interests = events.names
        plan.events = events.names.subtracting(configuration.files.map(\.name))
        plan.pinnedStates = configuration.pinnedStates
        coordinator = Coordinator(plan)
        for change in sources.beginnings { note(change) }
        face.answerRelayed = { [unowned self] call, answer in
            let process = coordinator.id(of: call.sender).flatMap { coordinator.process(of: $0) }
            relaying.answer(call, answer, process: process)
        }
    }

    // MARK: - Events

    /// Passes an event to the coordinator, and carries out the effects.
    func handle(_ event: Event, on link: borrowing BusLink) {
        events.append(event)
        guard !isBusy else { return }
        isBusy = true
        defer { isBusy = false }
        while !events.isEmpty {
            let event = events.removeFirst()
            for effect in coordinator.handle(event, at: .now) { perform(effect, on: link) }
        }
    }

    func startSources(on link: borrowing BusLink) {
        guard !sources.isRunning else { return }
        for change in sources.start() { note(change) }
        sources.run(on: link)
    }

    func restIfNobodyObserves() {
        if sources.isRunning, !coordinator.hasObservers { watcher.rest(after: Agent.lingering) }
    }

    /// Changes of sources have no effect by themselves.
    private func note(_ change: SourceSet.Change) {
        _ = coordinator.handle(.sourceWasReset(change.source, change.condition), at: .now)
    }

    // MARK: - Programs started for names

    /// Rereads the files of `launch.d`.
    func loadLaunches(on link: borrowing BusLink) {
        guard !uniqueName.isEmpty else { return }
        launchWatch.refresh()
        let launching = launching ?? makeLaunching()
        self.launching = launching
        launching.load(on: link)
        // The launcher hears the names itself, as it must know who posted. This only records that they are wanted.
        handle(.agentObserves(launching.subjects), on: link)
    }

    private func makeLaunching() -> Launching {
        let surroundings = Launching.Surroundings(
            identity: identity,
            process: { [unowned self] id in coordinator.process(of: id).flatMap { processes[$0] } },
            connections: { [unowned self] in coordinator.list.map(\.id) },
            subjects: { [unowned self] id in coordinator.subjects(of: id) },
            // The coordinator decides what that means for states.
            deliver: { [unowned self] id, names, link in handle(.found(id, names), on: link) },
            alarm: { [unowned self] time in alarms.set(.launching, at: time) },
            workHasEnded: { [unowned self] _ in endDelayIfOver() },
            warn: { [logger] text in logger.warning(text) }
        )
        return Launching(servesMachine: identity.servesMachine, launchFolders, surroundings)
    }

    // MARK: - The connection

    /// When the bus is gone, the manager of the agent restarts it.
    package var keepsConnection: Bool { false }

    /// Observers pass duplicates of their sockets.
    package var takesDescriptors: Bool { true }

    /// While calls wait there is no sleep, and the socket is read between two slices of them.
    package var deadline: MonotonicTime? {
        intake.isEmpty ? session.router.deadline : MonotonicTime(nanoseconds: 0)
    }

    package func deadlineHasPassed(_ link: borrowing BusLink) {
        if let deadline = session.router.deadline, deadline <= .now { session.router.deadlineHasPassed(link) }
        serve(on: link)
    }

    package func hasReplied(to caller: String, bytes: Int, on link: borrowing BusLink) {
        intake.hasReplied(to: caller, bytes: bytes, on: link)
    }

    /// A bus that accepts nothing for that long has stopped, or counts so much as under way from the agent that it no
    /// longer reads from it. Then nobody is served. A new agent has a new connection, with which observers register again.
    package var stallLimit: Int64? { 10_000 }

    package func linkIsReady(_ link: borrowing BusLink) {
        session.router.linkIsReady(link)
        // ALLOW_REPLACEMENT, DO_NOT_QUEUE, REPLACE_EXISTING
        let flags: UInt32 = 1 | 4 | (configuration.replaces ? 2 : 0)
        link.callBus("RequestName", [.string(AgentInterface.name), .uint32(flags)]) { [self] answer, link in
            switch answer {
            case .failure(let fault): report(.refused(fault.message))
            case .success(let values):
                // PRIMARY_OWNER, ALREADY_OWNER
                guard let code = values.first?.uint32, code == 1 || code == 4 else { return nameIsTaken(link) }
                uniqueName = link.uniqueName
                logger.debug("acquired the bus name", metadata: ["connection": "\(uniqueName)"])
                loadLaunches(on: link)
                report(.ready)
            }
        }
    }

    package func linkIsLost(_ error: NotifyBusError) {
        report(.busIsLost(error))
    }

    private func nameIsTaken(_ link: borrowing BusLink) {
        link.callBus("GetConnectionUnixProcessID", [.string(AgentInterface.name)]) { [report] answer, _ in
            let owner: UInt32? = if case .success(let values) = answer { values.first?.uint32 } else { nil }
            report(.nameIsTaken(owner: owner))
        }
    }

    package func handle(_ signal: BusSignal, on link: borrowing BusLink) {
        signal.arguments.closeDescriptors()
        launching?.handle(signal, on: link)
        session.router.handle(signal, on: link)
        guard signal.sender == "org.freedesktop.DBus", signal.interface == "org.freedesktop.DBus" else { return }
        let texts = signal.arguments.compactMap(\.string)
        switch signal.member {
        case "NameLost" where texts == [AgentInterface.name] && !uniqueName.isEmpty:
            // From now on observers obey the other agent, to which whoever waits for this one must turn.
            wasReplaced = true
            face.refuseAll(.replaced, on: link)
            report(.wasReplaced)
        case "NameOwnerChanged" where texts.count == 3 && texts[2].isEmpty:
            sources.hasLeft(texts[0], on: link)
            if let id = coordinator.id(of: texts[0]), ends.watches(id) { handle(.connectionEnded(id), on: link) }
        default: break
        }
    }

    package func handle(post name: NotifyName, on link: borrowing BusLink) {
        handle(.posted(name), on: link)
    }

    // MARK: - The watcher and the sources

    func handle(_ event: Watcher.Event, on link: borrowing BusLink) {
        switch event {
        case .ended(let number): if let process = processes[number: number] { handle(.processEnded(process), on: link) }
        case .stopped(let number):
            if let process = processes[number: number] { handle(.processStopped(process), on: link) }
        case .continued(let number):
            if let process = processes[number: number] { handle(.processContinued(process), on: link) }
        case .hungUp(let number): handle(.connectionEnded(ConnectionID(number)), on: link)
        case .drained(let number, let outcome):
            // The names that these posts were sent for have then been taken note of.
            link.callBus("GetId", []) { [self] _, link in
                streamIsRead(ConnectionID(number), outcome, outcome.owned.keys.sorted()[...], on: link)
            }
        case .alarm:
            for owner in alarms.take(now: MonotonicTime.now.nanoseconds) {
                switch owner {
                case .coordinator: handle(Event.alarm, on: link)
                case .events: handle(EventTable.Input.alarm, on: link)
                case .sleep: endDelayIfOver()
                case .launching: launching?.alarmHasCome(on: link)
                case .relaying: relaying.restIfNobodyNeedsIt()
                }
            }
        case .pause: takeNews(on: link)
        case .rest:
            guard !coordinator.hasObservers, eventPart.factNames.isEmpty else { break }
            for change in sources.stop() { note(change) }
            loginEvents.rest()
        case .moved(let number):
            if let process = processes[number: number], let facts = coordinator.facts(of: process) {
                sources.present(facts)
            }
        }
    }

    /// Checks what the sources have put on the board.
    func takeNews(on link: borrowing BusLink) {
        let began = MonotonicTime.now.nanoseconds
        let news = sources.board.take()
        let later = takeLogins(news["logind"], on: link)
        handle(.news(news), on: link)
        post(later, afterChangesOn: link)
        sources.board.rest(after: MonotonicTime.now.nanoseconds - began)
    }

    /// Lets everything continue that the agent has stopped.
    func end(on link: borrowing BusLink) {
        _ = sources.stop()
        eventPart.end()
        handle(Event.ending, on: link)
        relaying.close()
    }
}

// SPDX-License-Identifier: Apache-2.0

import Logging
package import NotifyCore

/// The lifecycle agent: it knows who observes, tells observers when to listen, and never sees a post, but for those whom
/// it stands in for.
///
/// `@unchecked Sendable`: everything in it is touched only by the thread that reads the center's observing connection.
package final class Agent: BusPeer, @unchecked Sendable {
    package enum Event: Sendable {
        /// The name is owned.
        case ready
        /// Another agent has the name.
        case nameIsTaken(owner: UInt32?)
        /// Another agent has taken the name.
        case wasReplaced
        case refused(String)
        case busIsLost(NotifyBusError)
    }

    package struct Configuration: Sendable {
        /// Applications that stay in the foreground.
        package var exemptApplications: Set<String> = []
        /// Which facts may flag whom.
        package var facts = FactPolicy()
        /// What Status says; the version of the program.
        package var version = ""
        /// Whether to take the name from another agent.
        package var replaces = false

        package init() {}
    }

    let configuration: Configuration
    let bus: NotifyCenter.Bus
    let logger: Logger
    let watcher: Watcher
    /// What the sources of facts have found.
    let board: FactBoard
    /// What is known by them.
    var sources: SourceTable
    /// How to make those that need to be started.
    let makers: [SourceMaker]
    /// Those that are at work.
    var running: [any LifecycleSource] = []
    /// The connection that said who has the focus, while it is on the bus.
    var shell: String?
    private let report: @Sendable (Event) -> Void
    let started = WallClock.now
    var uniqueName = ""
    var directory = Directory()
    var holds = HoldTable()
    let identity: Identity
    var window = CallWindow()
    var nameStates = NameStateTable()
    /// How many connections the bus watches for us by a rule each, and by one rule for all.
    var nameWatches = 0
    var sharedNameWatches = 0
    /// Calls that wait for their change, the oldest first.
    var requests: [ChangeRequest] = []
    /// Those whose parking began, by number, and who inherits what is found in their stream.
    var heirs: [UInt64: ManagedConnection] = [:]

    init(
        _ configuration: Configuration,
        bus: NotifyCenter.Bus,
        logger: Logger,
        watcher: Watcher,
        board: FactBoard,
        sources makers: [SourceMaker],
        report: @escaping @Sendable (Event) -> Void
    ) {
        self.configuration = configuration
        self.bus = bus
        identity = Identity(bus: bus)
        self.logger = logger
        self.watcher = watcher
        self.board = board
        self.makers = makers
        let own = [Agent.shellSource, Agent.freezerSource]
        sources = SourceTable(
            makers.map(\.name) + own.filter { !configuration.facts.ignoredSources.contains($0) }
        )
        self.report = report
        prepareOwnSources()
    }

    // MARK: - The connection

    /// Whoever manages the agent starts it anew when the bus is gone.
    package var keepsConnection: Bool { false }

    /// Observers hand over duplicates of their sockets.
    package var takesDescriptors: Bool { true }

    package func linkIsReady(_ link: borrowing BusLink) {
        // ALLOW_REPLACEMENT, DO_NOT_QUEUE, REPLACE_EXISTING
        let flags: UInt32 = 1 | 4 | (configuration.replaces ? 2 : 0)
        link.callBus("RequestName", [.string(AgentInterface.name), .uint32(flags)]) { [self] answer, link in
            switch answer {
            case .failure(let fault): report(.refused(fault.message))
            case .success(let values):
                // PRIMARY_OWNER, ALREADY_OWNER
                guard let code = values.first?.uint32, code == 1 || code == 4 else { return nameIsTaken(link) }
                uniqueName = link.uniqueName
                logger.debug("owns the name", metadata: ["connection": "\(uniqueName)"])
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

    // MARK: - What arrives

    package func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool {
        do throws(BusFault) {
            try answer(call, on: link)
        } catch {
            link.refuse(call, error)
        }
        return true
    }

    package func handle(_ signal: BusSignal, on link: borrowing BusLink) {
        signal.arguments.closeDescriptors()
        guard signal.sender == "org.freedesktop.DBus", signal.interface == "org.freedesktop.DBus" else { return }
        let texts = signal.arguments.compactMap(\.string)
        switch signal.member {
        case "NameLost" where texts == [AgentInterface.name] && !uniqueName.isEmpty:
            report(.wasReplaced)
        case "NameOwnerChanged" where texts.count == 3 && texts[2].isEmpty:
            shellHasLeft(texts[0], link)
            if let connection = directory[texts[0]], connection.nameWatch != .none {
                connectionIsGone(connection, link)
            }
        default: break
        }
    }

    package func handle(post name: NotifyName, on link: borrowing BusLink) {
        holds.forEachHolder(of: name) { connection in
            guard connection.transition.isCollecting else { return }
            if !connection.pending.insert(name) { connection.dropped += 1 }
        }
        if holds.quench(name) { link.release(names: [name]) }
    }

    func handle(_ event: Watcher.Event, on link: borrowing BusLink) {
        switch event {
        case .ended(let number): processHasEnded(number, link)
        case .stopped(let number): processHasStopped(number, link)
        case .continued(let number): processContinues(number, link)
        case .hungUp(let number):
            if let connection = directory[number: number] { connectionIsGone(connection, link) }
        case .drained(let number, let outcome): streamIsRead(number, outcome, link)
        case .alarm:
            expireRequests(link)
            pump(link)
        case .pause:
            takeNews(link)
        case .rest:
            restIfAlone()
        case .moved(let number):
            if let process = directory.process(number: number) { present(process) }
        }
    }
}

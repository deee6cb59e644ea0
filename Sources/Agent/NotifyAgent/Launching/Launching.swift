// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// Starts programs for names: passes the launcher what happens on the bus, and carries out its effects.
final class Launching: PostListener {
    /// What the rest of the agent does for it.
    struct Environment {
        let identity: Identity
        /// The units and the process numbers of registered connections.
        let process: (ConnectionID) -> ProcessHandle?
        let connections: () -> [ConnectionID]
        let subjects: (ConnectionID) -> Subjects?
        let deliver: (ConnectionID, [NotifyName]) -> Void
        let alarm: (Int64) -> Void
        /// Whether the agent begins nothing any more: another one may hear the same posts.
        let isOver: () -> Bool
        /// A program that was started has exited, or will not be started: `isAtWork` may have changed.
        let workHasEnded: () -> Void
        /// Files of `launch.d` are to be reread.
        let filesHaveChanged: () -> Void
        /// The state of a name; nil if it is an event's and not known.
        let state: (NotifyName) -> UInt64?
        /// A warning for administrators.
        let warn: (String) -> Void
    }

    let receiver: Receiver
    var link: BusLink { receiver.link }
    /// Services on the same bus.
    private let bus: any ServiceBus
    let environment: Environment
    private let folders: LaunchFolders
    private let watch: LaunchWatch
    private(set) var launcher = Launcher()
    private(set) var manager: ServiceManager?
    private var names: NameWatch?
    private var faults: [LaunchFolders.File] = []
    private let pump = Pump<Launcher.Event>()
    private var ownsName = false
    /// Whether the conditions of entries hold, as far as the launcher knows.
    private var allowed: [LaunchID: Bool] = [:]
    /// Those whose conditions hold once the bus has passed on what was posted.
    private var waitingForPosts: [LaunchID: UInt64] = [:]
    /// How often the bus was asked that.
    private var lastQuestion: UInt64 = 0
    /// By how many entries each name and prefix is wanted: the connection hears it once for all of them.
    var subscriptions = SubjectIndex<Int>()
    var unidentified = UnidentifiedPosts<BusCall>()
    private var units: ProcessUnits
    /// What the bus delivers besides what entries want, while an agent takes over from another one.
    var kept: Subjects?
    /// Whether another agent takes over from this one.
    var isLeaving = false
    /// What is done once it is known what the agent before this one has not read: nothing is started until then.
    var postponed: [(id: LaunchID, entry: LaunchEntry)]?
    var whenIdentified: (() -> Void)?
    /// What was found in the stream of the agent before this one: each once.
    var found: Set<UnidentifiedPost> = []

    init(
        _ receiver: Receiver,
        _ bus: any ServiceBus,
        servesMachine: Bool,
        on loop: EventLoop,
        _ environment: Environment
    ) {
        (self.receiver, self.bus) = (receiver, bus)
        units = ProcessUnits(servesMachine: servesMachine)
        self.environment = environment
        folders = LaunchFolders(servesMachine: servesMachine)
        watch = LaunchWatch(folders, on: loop, changed: environment.filesHaveChanged)
    }

    // MARK: - Files

    /// Rereads the files.
    ///
    /// - Parameter heritage: what the agent before this one knew.
    func load(inheriting heritage: [LaunchHeritage] = []) {
        watch.begin()
        let files = folders.read()
        faults = files.filter { if case .failure = $0.content { true } else { false } }
        for file in faults {
            if case .failure(let fault) = file.content { environment.warn(fault.text(in: file.path)) }
        }
        let entries = files.compactMap { try? $0.content.get() }
        if entries.isEmpty, launcher.isEmpty { return }
        if entries.contains(where: \.runsByManager) { findManager() }
        handle(.load(entries, inheriting: heritage))
        if !entries.contains(where: \.runsByManager) {
            manager?.end()
            manager = nil
        }
        showOnBus()
        observeAll()
        allowed = [:]
        statesHaveChanged()
    }

    /// The states of names may have changed, on which entries depend. A state is known before it is posted: a condition
    /// that does not hold any more keeps back that post, and one that holds now waits for it, so that both are one
    /// start.
    func statesHaveChanged() {
        if launcher.isEmpty { return }
        let number = lastQuestion + 1
        for (id, hold) in changedConditions {
            if !hold {
                waitingForPosts[id] = nil
                allow(id, false)
            } else if waitingForPosts[id] == nil {
                waitingForPosts[id] = number
                lastQuestion = number
            }
        }
        // The post follows in this turn of the loop, and so is before the second question.
        if number == lastQuestion { allowLater(number, rounds: 2) }
    }

    private func allowLater(_ question: UInt64, rounds: Int) {
        link.callBus("GetId", []) { [self] _ in
            if rounds > 1 { return allowLater(question, rounds: rounds - 1) }
            for (id, number) in waitingForPosts where number == question {
                waitingForPosts[id] = nil
                if changedConditions.contains(where: { $0.id == id && $0.hold }) { allow(id, true) }
            }
        }
    }

    private var changedConditions: [(id: LaunchID, hold: Bool)] {
        launcher.entries.compactMap { id, entry in
            if entry.conditions.isEmpty { return nil }
            let hold = entry.conditions.allSatisfy { $0.holds(for: environment.state($0.name)) }
            return allowed[id] == hold ? nil : (id, hold)
        }
    }

    private func allow(_ id: LaunchID, _ hold: Bool) {
        allowed[id] = hold
        handle(.conditions(id, hold: hold))
    }

    func findManager() {
        guard manager == nil, postponed == nil else { return }
        manager = ServiceManager(link, on: bus) { [weak self] event in self?.managerReports(event) }
    }

    func observeAll() {
        for connection in environment.connections() { observes(connection, isNew: false) }
    }

    /// Owns a name while there are entries.
    private func showOnBus() {
        let isNeeded = !launcher.isEmpty
        guard isNeeded != ownsName else { return }
        ownsName = isNeeded
        if isNeeded {
            // DO_NOT_QUEUE, REPLACE_EXISTING, ALLOW_REPLACEMENT
            link.callBus("RequestName", [.string(AgentInterface.launcherName), .uint32(7)])
        } else {
            link.callBus("ReleaseName", [.string(AgentInterface.launcherName)])
            units.forgetAll()
        }
    }

    // MARK: - Events and effects

    func handle(_ event: Launcher.Event) {
        if environment.isOver() { return }
        let isOutermost = pump.handle(event) { for effect in launcher.handle($0, at: .now) { perform(effect) } }
        if isOutermost { keepNothingIfAwake() }
    }

    private func managerReports(_ event: Launcher.Event) {
        switch event {
        case .activity(let id, true, _) where launcher.isWaking(id):
            // With its first report about an entry the manager has also said which unit it is. If that runs, its
            // programs may have registered before.
            for connection in connections(of: id) { observes(connection, isNew: false) }
            handle(event)
        case .activity(let id, false, _) where launcher.isReplacing(id):
            // The next program may have registered before the agent learned that the last one has ended.
            handle(event)
            for connection in connections(of: id) where environment.process(connection)?.isAlive == true {
                observes(connection, isNew: true)
            }
        default: handle(event)
        }
    }

    /// What has registered from the unit of an entry.
    private func connections(of id: LaunchID) -> [ConnectionID] {
        guard let unit = manager?.unit(of: id) else { return [] }
        return environment.connections().filter { connection in
            environment.process(connection).flatMap { self.units.unit(of: $0) } == unit
        }
    }

    private func perform(_ effect: Launcher.Effect) {
        switch effect {
        case .subscribe(let id, let subjects): subscribe(subjects, for: id)
        case .unsubscribe(_, let subjects):
            let last = subscriptions.remove(subjects)
            receiver.unsubscribe(names: Array(last.names), prefixes: Array(last.prefixes), for: self)
        case .attach(let id, let entry): attach(id, entry)
        case .detach(let id, let entry):
            postponed?.removeAll { $0.id == id }
            if case .activation = entry.action { names?.detach(id) } else { manager?.detach(id) }
        case .start(let id, let number, let entry, let first, let restarts):
            start(id, number, entry, first, restarts: restarts)
        case .deliver(let connection, let names): environment.deliver(connection, names)
        case .mark(let mark):
            // The reply is at the point in the stream of posts at which the bus has routed everything sent before.
            link.callBus("GetId", []) { [self] _ in
                if unidentified.pass(mark) { handle(.marked(mark)) }
            }
        case .complain(_, let entry, let reason): environment.warn("\(entry.title) was not started: \(reason)")
        case .workHasEnded: environment.workHasEnded()
        case .alarm(let moment): environment.alarm(moment)
        }
    }

    private func subscribe(_ subjects: Subjects, for id: LaunchID) {
        let first = subscriptions.insert(subjects)
        guard !first.isEmpty else {
            // Another entry has requested them, and the bus replies in order.
            return link.callBus("GetId", []) { [self] _ in handle(.subscribed(id, failure: nil)) }
        }
        receiver.subscribe(names: Array(first.names), prefixes: Array(first.prefixes), for: self) { [self] error in
            handle(.subscribed(id, failure: error?.description))
        }
    }

    func attach(_ id: LaunchID, _ entry: LaunchEntry) {
        if postponed != nil { return postponed?.append((id, entry)) ?? () }
        switch entry.action {
        case .unit(let unit): manager?.attach(id, unit)
        case .command: manager?.attach(id, command: entry.title)
        case .activation(let name):
            if names == nil { names = NameWatch(link, on: bus) }
            names?.attach(id, name) { [weak self] change in
                switch change {
                case .owned(let isOwned): self?.handle(.activity(id, isOwned))
                case .processIsKnown: self?.programIsKnown(id)
                }
            }
        }
    }

    private func start(
        _ id: LaunchID,
        _ number: UInt64,
        _ entry: LaunchEntry,
        _ first: NotifyName,
        restarts: Bool
    ) {
        switch entry.action {
        case .unit(let unit): manager?.start(id, number: number, unit, restarts: restarts)
        case .command(let words):
            manager?.start(id, number: number, entry, command: words, first: first, restarts: restarts)
        case .activation(let name):
            link.startService(name) { [self] answer in
                let outcome: Launcher.Outcome =
                    switch answer {
                    case .failure(let fault): .failed(fault.message.sentence)
                    // DBUS_START_REPLY_ALREADY_RUNNING
                    case .success(let values): values.first?.uint32 == 2 ? .wasRunning : .done
                    }
                handle(.ended(id, number: number, outcome))
            }
        }
    }

    // MARK: - Posts

    func handle(post name: NotifyName, from sender: String) {
        // A program finds the name in its environment, and may well write it to a file line by line.
        if name.hasControlCharacters { return }
        var trusted: [LaunchID] = []
        var questions: Set<LaunchEntry.Trust> = []
        for (id, trust) in launcher.entries(for: name) {
            if trust == .anyone { trusted.append(id) } else { questions.insert(trust) }
        }
        if !trusted.isEmpty { handle(.heard(name, trusted)) }
        for trust in questions { identify(name, .init(sender: sender, trust: trust)) }
    }

    private func identify(_ name: NotifyName, _ question: UnidentifiedPosts<BusCall>.Question) {
        guard unidentified.add(name, question) else { return }
        if question.trust == .root {
            link.findUser(of: question.sender) { [self] user in
                isAnswered(question, counts: (try? user.get()) == 0)
            }
        } else {
            environment.identity.identify(question.sender) { [self] caller in
                isAnswered(question, counts: caller?.confinement == nil && caller?.mayChange(geteuid()) == true)
            }
        }
    }

    /// - Parameter counts: whether the sender is one of those whose posts count.
    private func isAnswered(_ question: UnidentifiedPosts<BusCall>.Question, counts: Bool) {
        for name in unidentified.take(question) where counts {
            let ids = launcher.entries(for: name).filter { $0.1 == question.trust }.map(\.0)
            if !ids.isEmpty { handle(.heard(name, ids)) }
        }
        for ping in unidentified.takePings(of: question.sender) { link.reply(to: ping) }
        for mark in unidentified.takeMarks(behind: question) {
            if mark == Launching.identification { allIsKnown() } else { handle(.marked(mark)) }
        }
        if unidentified.isEmpty { environment.workHasEnded() }
    }

    /// Leaves a Ping unanswered until its sender's posts have been identified: a program that has posted waits for that
    /// before it exits.
    func postpones(_ call: BusCall) -> Bool {
        guard call.member == "Ping", call.interface == "org.freedesktop.DBus.Peer", call.arguments.isEmpty else {
            return false
        }
        return unidentified.postpone(call, from: call.sender)
    }

    // MARK: - Observing programs

    /// What a connection observes is new, or has changed.
    ///
    /// - Parameter isNew: whether the bus has just been given its rules for some of it.
    func observes(_ connection: ConnectionID, isNew: Bool) {
        guard !launcher.isEmpty, let process = environment.process(connection),
            let subjects = environment.subjects(connection)
        else { return }
        let unit = units.unit(of: process)
        var (ids, possible): ([LaunchID], [LaunchID]) = ([], [])
        for (id, entry) in launcher.entries {
            if case .activation = entry.action {
                switch names?.owner(of: id) {
                case process.pid?: ids.append(id)
                case nil: possible.append(id)
                default: break
                }
            } else if let unit, manager?.unit(of: id) == unit {
                ids.append(id)
            }
        }
        if !ids.isEmpty { handle(.observes(connection, ids, subjects, isNew: isNew)) }
        if !possible.isEmpty { handle(.mayObserve(connection, possible, subjects, isNew: isNew)) }
    }

    /// The process that owns the name of an entry is known: the names that it has observed so far are the program's.
    private func programIsKnown(_ id: LaunchID) {
        let pid = names?.owner(of: id)
        let connections = environment.connections().filter { environment.process($0)?.pid == pid }
        let observers = connections.compactMap { connection in
            environment.subjects(connection).map { (connection, $0) }
        }
        handle(.programIsKnown(id, pid == nil ? [] : observers))
    }

    func hasLeft(_ connection: ConnectionID) {
        if !launcher.isEmpty { handle(.left(connection)) }
    }

    func forget(_ process: ProcessID) { units.forget(process) }

    func alarmHasCome() { handle(.alarm) }

    // MARK: - Status

    /// Whether a post of one of these is about to start something, or what it has started has not exited.
    func isAtWork(on names: Set<NotifyName>) -> Bool { !unidentified.isEmpty || launcher.isAtWork(on: names) }

    /// The unit in which the program of an entry runs, or the pattern of those in which it will.
    private func unit(of report: Launcher.Report) -> String {
        guard case .command = report.entry.action else { return "" }
        return manager?.unit(of: report.id) ?? ServiceManager.stem(of: report.entry.title) + "*.service"
    }

    /// All names that start something.
    var subjects: Subjects { launcher.subjects }

    /// The subjects that must be reported because entries depend on them.
    var wanted: Subjects { launcher.subjects.union(Subjects(names: launcher.conditions)) }

    var entries: [AgentInterface.LaunchStatus] {
        launcher.reports.map { AgentInterface.LaunchStatus($0, unit: unit(of: $0)) }
            + faults.map { AgentInterface.LaunchStatus($0) }
    }
}

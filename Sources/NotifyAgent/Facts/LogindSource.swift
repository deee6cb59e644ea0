// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// What logind knows of the user's sessions: which are active, which are locked, and whether the machine goes to sleep.
/// See org.freedesktop.login1(5).
///
/// It looks at properties alone: the signals Lock and Unlock are requests, which nobody need follow.
///
/// `@unchecked Sendable`: the variables are touched only by the thread that reads the center's connection.
final class LogindSource: LifecycleSource, BusPeer, @unchecked Sendable {
    /// What logind lets programs delay. See systemd-inhibit(1).
    enum Delay: String {
        case sleep, shutdown
    }

    private static let name = "org.freedesktop.login1"
    private static let path = "/org/freedesktop/login1"
    private static let manager = "org.freedesktop.login1.Manager"
    private static let session = "org.freedesktop.login1.Session"
    private static let properties = "org.freedesktop.DBus.Properties"
    /// More sessions than any machine has.
    private static let maximumSessions = 1_024

    private let outlet: FactOutlet
    /// Whose sessions count; nil means everyone's.
    private let user: UInt32?
    private let center: Monitor<NotifyCenter?>
    private let bus: NotifyCenter.Bus

    /// logind's unique name, which nobody else can have.
    private var owner: String?
    private var logins = Logins()
    private var idOfPath: [String: String] = [:]
    private var hasBeenReady = false
    /// Counts the times that everything was asked for: answers to an earlier one come too late.
    private var round = 0
    private var openQuestions = 0
    /// Whether something has happened meanwhile that must be asked for again.
    private var mustAskAgain = false
    /// What is to be delayed by a lock of logind, and the locks that it has given.
    private var delayed: Set<Delay> = []
    private var locks: [Delay: Int32] = [:]
    private var asksForLock: Set<Delay> = []
    /// Sessions of other users, and the ids of all sessions that people work in.
    private var classOfSession: [String: String] = [:]

    init(_ outlet: FactOutlet, user: UInt32?, bus: NotifyCenter.Bus = .system) {
        self.outlet = outlet
        self.user = user
        self.bus = bus
        center = Monitor(nil)
    }

    /// Has logind wait with one of these until `letGo`, from now on, or no longer. From any thread.
    func delay(_ delays: Set<Delay>) {
        center.withLock { $0 }?.perform { [self] link in
            delayed = delays
            for (delay, lock) in locks where !delays.contains(delay) {
                close(lock)
                locks[delay] = nil
            }
            takeLocks(link)
        }
    }

    /// Whoever is to know of the sleep or the shutdown that has begun knows of it.
    func letGo() {
        center.withLock { $0 }?.perform { [self] _ in closeLocks() }
    }

    private func closeLocks() {
        for lock in locks.values { close(lock) }
        locks = [:]
    }

    private func takeLocks(_ link: borrowing BusLink) {
        guard let owner, !logins.isAsleep, !logins.isShuttingDown else { return }
        for delay in delayed where locks[delay] == nil && asksForLock.insert(delay).inserted {
            let texts = [delay.rawValue, "notify-agent", "Programs are told of it first.", "delay"]
            link.call(
                owner,
                path: LogindSource.path,
                interface: LogindSource.manager,
                member: "Inhibit",
                texts.map { .string($0) }
            ) { [self] answer, link in
                asksForLock.remove(delay)
                guard let values = try? answer.get() else { return }
                // One that came too late or for nobody is given back.
                guard let lock = values.first?.descriptor, lock >= 0, owner == self.owner, locks[delay] == nil,
                    delayed.contains(delay), !logins.isAsleep, !logins.isShuttingDown
                else {
                    values.closeDescriptors()
                    return takeLocks(link)
                }
                locks[delay] = lock
            }
        }
    }

    func start() {
        let center = NotifyCenter(bus: bus, peer: self)
        self.center.withLock { $0 = center }
        do throws(NotifyBusError) {
            try center.open()
        } catch {
            outlet.say(.off(error.description))
        }
    }

    // Whatever has kept the center from doing so.
    deinit { closeLocks() }

    func stop() {
        outlet.close()
        center.withLock { $0 }?.perform { [self] _ in
            delayed = []
            closeLocks()
        }
        retire()
    }

    private func retire() {
        let center = center.withLock { center in
            defer { center = nil }
            return center
        }
        guard let center else { return }
        // It waits for the center's thread, and that may be waiting for the bus.
        (try? EngineThread(name: "logind") { center.close() })?.detach()
    }

    // MARK: - The connection

    /// A machine that has no system bus gets none later; one that had will have it again.
    var keepsConnection: Bool { hasBeenReady }

    /// Locks are descriptors.
    var takesDescriptors: Bool { true }

    func linkIsReady(_ link: borrowing BusLink) {
        hasBeenReady = true
        for rule in LogindSource.rules { link.callBus("AddMatch", [.string(rule)]) }
        link.callBus("GetNameOwner", [.string(LogindSource.name)]) { [self] answer, link in
            guard case .success(let values) = answer else {
                if owner == nil { outlet.say(.off("systemd-logind does not run")) }
                return
            }
            ownerHasChanged(to: values.first?.string ?? "", link)
        }
    }

    func linkIsLost(_ error: NotifyBusError) {
        forget()
        if hasBeenReady { return outlet.say(.off("the system bus went away")) }
        outlet.say(.off(error.description))
        // No thread waits for one.
        retire()
    }

    private func forget() {
        owner = nil
        logins = Logins()
        idOfPath = [:]
        round += 1
        openQuestions = 0
        mustAskAgain = false
        classOfSession = [:]
        asksForLock = []
        closeLocks()
    }

    private static let rules = [
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
            + "arg0='\(name)'",
        "type='signal',sender='\(name)',interface='\(manager)',path='\(path)'",
        "type='signal',sender='\(name)',interface='\(properties)',member='PropertiesChanged',arg0='\(session)'",
    ]

    private func ownerHasChanged(to owner: String, _ link: borrowing BusLink) {
        guard owner != self.owner else { return }
        forget()
        guard !owner.isEmpty else { return outlet.say(.off("systemd-logind went away")) }
        self.owner = owner
        askForEverything(link)
    }

    // MARK: - Questions

    private func askForEverything(_ link: borrowing BusLink) {
        guard openQuestions == 0 else {
            mustAskAgain = true
            return
        }
        round += 1
        mustAskAgain = false
        let round = round
        ask("Get", [.string(LogindSource.manager), .string("PreparingForSleep")], of: LogindSource.path, link) {
            [self] answer, link in
            guard round == self.round, case .variant(let value)? = answer?.first, let isAsleep = value.boolean else {
                return
            }
            logins.isAsleep = isAsleep
            takeLocks(link)
        }
        ask("Get", [.string(LogindSource.manager), .string("PreparingForShutdown")], of: LogindSource.path, link) {
            [self] answer, _ in
            guard round == self.round, case .variant(let value)? = answer?.first, let isEnding = value.boolean else {
                return
            }
            logins.isShuttingDown = isEnding
        }
        ask("ListSessions", of: LogindSource.path, interface: LogindSource.manager, link) { [self] answer, link in
            guard round == self.round, let answer else { return }
            takeSessions(answer.first?.elements ?? [], link)
        }
    }

    private func takeSessions(_ list: [BusValue], _ link: borrowing BusLink) {
        var paths: [String: String] = [:]
        var sessions: [String: Logins.Session] = [:]
        var all: Set<String> = []
        for case .structure(let fields) in list.prefix(LogindSource.maximumSessions) {
            guard fields.count == 5, let id = fields[0].string, let owner = fields[1].uint32,
                case .text(_, let path) = fields[4]
            else { continue }
            all.insert(id)
            guard user == nil || owner == user else {
                // Of others it counts only whether people work in them.
                if classOfSession[id] == nil { askForClass(of: id, path, link) }
                continue
            }
            paths[path] = id
            // What is known of it stays until the answer has come.
            sessions[id] = logins.sessions[id].flatMap { $0.user == owner ? $0 : nil } ?? Logins.Session(user: owner)
        }
        logins.sessions = sessions
        classOfSession = classOfSession.filter { all.contains($0.key) }
        countPeople()
        idOfPath = paths
        for path in paths.keys { askForSession(path, link) }
    }

    private func askForClass(of id: String, _ path: String, _ link: borrowing BusLink) {
        let round = round
        ask("Get", [.string(LogindSource.session), .string("Class")], of: path, link) { [self] answer, _ in
            guard round == self.round, case .variant(let value)? = answer?.first else { return }
            classOfSession[id] = value.string
            countPeople()
        }
    }

    private func countPeople() {
        logins.people = Set(classOfSession.filter { $0.value.utf8.starts(with: "user".utf8) }.keys)
    }

    private func askForSession(_ path: String, _ link: borrowing BusLink) {
        let round = round
        ask("GetAll", [.string(LogindSource.session)], of: path, link) { [self] answer, _ in
            guard round == self.round, let values = answer?.first?.dictionary else { return }
            note(values, of: path)
        }
    }

    /// Asks logind; when all is answered, what it comes to is said.
    private func ask(
        _ member: String,
        _ arguments: [BusValue] = [],
        of path: String,
        interface: String = LogindSource.properties,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable ([BusValue]?, borrowing BusLink) -> Void
    ) {
        guard let owner else { return }
        openQuestions += 1
        let round = round
        link.call(owner, path: path, interface: interface, member: member, arguments) { [self] answer, link in
            let values = try? answer.get()
            values?.closeDescriptors()
            guard round == self.round, owner == self.owner else { return }
            completion(values, link)
            openQuestions -= 1
            guard openQuestions == 0 else { return }
            say()
            if mustAskAgain { askForEverything(link) }
        }
    }

    private func say() {
        outlet.say(.live)
        outlet.say(.logins(logins))
    }

    private func note(_ values: [String: BusValue], of path: String) {
        guard let id = idOfPath[path] else { return }
        if let isActive = values["Active"]?.boolean { logins.sessions[id]?.isActive = isActive }
        if let isLocked = values["LockedHint"]?.boolean { logins.sessions[id]?.isLocked = isLocked }
        if let type = values["Type"]?.string { logins.sessions[id]?.type = type }
        if let isIdle = values["IdleHint"]?.boolean { logins.sessions[id]?.isIdle = isIdle }
        if let category = values["Class"]?.string {
            logins.sessions[id]?.category = category
            classOfSession[id] = category
            countPeople()
        }
        // A session whose user is logging out stays as long as a process of it does.
        if values["State"]?.string == "closing" { logins.sessions[id]?.isActive = false }
    }

    // MARK: - Signals

    func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool { false }

    func handle(_ signal: BusSignal, on link: borrowing BusLink) {
        signal.arguments.closeDescriptors()
        if signal.sender == "org.freedesktop.DBus" {
            guard signal.member == "NameOwnerChanged", signal.arguments.count == 3,
                signal.arguments[0].string == LogindSource.name
            else { return }
            return ownerHasChanged(to: signal.arguments[2].string ?? "", link)
        }
        // Anyone can send a signal to one connection, whatever its match rules.
        guard signal.sender == owner else { return }
        switch (signal.interface, signal.member) {
        case (LogindSource.manager, "SessionNew"), (LogindSource.manager, "SessionRemoved"):
            askForEverything(link)
        case (LogindSource.manager, "PrepareForSleep"):
            guard let isAsleep = signal.arguments.first?.boolean else { return }
            logins.isAsleep = isAsleep
            takeLocks(link)
            if openQuestions == 0 { say() }
        case (LogindSource.manager, "PrepareForShutdown"):
            guard let isEnding = signal.arguments.first?.boolean else { return }
            logins.isShuttingDown = isEnding
            takeLocks(link)
            if openQuestions == 0 { say() }
        case (LogindSource.properties, "PropertiesChanged"):
            propertiesHaveChanged(signal, link)
        default: break
        }
    }

    private func propertiesHaveChanged(_ signal: BusSignal, _ link: borrowing BusLink) {
        guard signal.arguments.count == 3, signal.arguments[0].string == LogindSource.session,
            let values = signal.arguments[1].dictionary, let invalid = signal.arguments[2].strings
        else { return }
        // Another user's, or one that is being asked for.
        guard idOfPath[signal.path] != nil else { return }
        // Answers that are under way were given after this, and say the same or what is newer.
        note(values, of: signal.path)
        if !Set(invalid).isDisjoint(with: ["Active", "LockedHint", "IdleHint", "State"]) {
            if openQuestions == 0 { askForSession(signal.path, link) } else { mustAskAgain = true }
        } else if openQuestions == 0 {
            say()
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// What logind knows of the user's sessions: which are active, which are locked, and whether the machine goes to sleep.
/// See org.freedesktop.login1(5).
///
/// It looks at properties alone: the signals Lock and Unlock are requests, which nobody need follow.
final class LogindSource: Source, ServiceClient {
    static let path = "/org/freedesktop/login1"
    static let manager = "org.freedesktop.login1.Manager"
    private static let session = "org.freedesktop.login1.Session"
    /// More sessions than any machine has.
    private static let maximumSessions = 1_024

    let service = FollowedService(
        name: "org.freedesktop.login1",
        title: "systemd-logind",
        signals: [
            "interface='\(manager)',path='\(path)'",
            "interface='\(PropertyChange.interface)',member='PropertiesChanged',arg0='\(session)'",
        ]
    )

    /// Whose sessions count; nil means everyone's.
    private let user: UInt32?
    private let bus: any ServiceBus
    private let delays = LogindDelays()
    private weak var driver: SourceDriver?

    private var logind: Service?
    private var logins = Logins()
    private var idOfPath: [String: String] = [:]
    private var openQuestions = 0
    /// Whether logind has not answered what all else depends on.
    private var isUnknown = false
    /// Whether something has happened meanwhile that must be asked for again.
    private var mustAskAgain = false
    /// Sessions of other users, and the ids of all sessions that people work in.
    private var classOfSession: [String: String] = [:]

    init(user: UInt32?, on bus: any ServiceBus) { (self.user, self.bus) = (user, bus) }

    func begin(on driver: SourceDriver) {
        self.driver = driver
        bus.add(self)
    }

    func end() {
        bus.remove(self)
        delays.want([])
        forget(nil)
        driver = nil
    }

    /// Has logind wait with one of these until `letGo`, from now on, or no longer.
    func delay(_ wanted: Set<LogindDelays.Delay>) { delays.want(wanted) }

    /// Whoever is to know of the sleep or the shutdown that has begun knows of it.
    func letGo() { delays.letGo() }

    // MARK: - Being there

    func serviceHasCome(_ service: Service) {
        forget(service)
        askForEverything()
    }

    func serviceIsAway(_ reason: String) {
        forget(nil)
        driver?.isOff(reason)
    }

    private func forget(_ new: Service?) {
        logind = new
        delays.connect(new)
        logins = Logins()
        idOfPath = [:]
        openQuestions = 0
        (mustAskAgain, isUnknown) = (false, false)
        classOfSession = [:]
    }

    // MARK: - Questions

    private func askForEverything() {
        guard openQuestions == 0 else {
            mustAskAgain = true
            return
        }
        (mustAskAgain, isUnknown) = (false, false)
        askForProperties(of: LogindSource.manager, at: LogindSource.path) { [self] values in
            if let isAsleep = values["PreparingForSleep"]?.boolean { logins.isAsleep = isAsleep }
            if let isEnding = values["PreparingForShutdown"]?.boolean { logins.isShuttingDown = isEnding }
            if let limit = values["InhibitDelayMaxUSec"]?.uint64 { logins.longestDelay = limit }
            delays.allow(!logins.isEnding)
        }
        ask { [self] logind, isAnswered in
            logind.call("ListSessions", of: LogindSource.manager, at: LogindSource.path) { answer in
                if let list = (try? answer.get())?.first?.elements {
                    self.takeSessions(list)
                } else {
                    self.isUnknown = true
                }
                isAnswered()
            }
        }
    }

    private func takeSessions(_ list: [BusValue]) {
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
                if classOfSession[id] == nil { askForClass(of: id, path) }
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
        for path in paths.keys { askForSession(path) }
    }

    private func askForClass(of id: String, _ path: String) {
        askForProperties(of: LogindSource.session, at: path) { [self] values in
            classOfSession[id] = values["Class"]?.string
            countPeople()
        }
    }

    private func countPeople() {
        logins.people = Set(classOfSession.filter { $0.value.utf8.starts(with: "user".utf8) }.keys)
    }

    private func askForSession(_ path: String) {
        askForProperties(of: LogindSource.session, at: path) { [self] values in note(values, of: path) }
    }

    private func askForProperties(
        of interface: String,
        at path: String,
        then completion: @escaping ([String: BusValue]) -> Void
    ) {
        ask { [self] logind, isAnswered in
            logind.properties(of: interface, at: path) { [self] values in
                // A session may have ended.
                if let values { completion(values) } else if path == LogindSource.path { isUnknown = true }
                isAnswered()
            }
        }
    }

    /// Asks logind; when all is answered, what it comes to is said.
    private func ask(_ question: (Service, @escaping () -> Void) -> Void) {
        guard let logind else { return }
        openQuestions += 1
        question(logind) { [self] in
            openQuestions -= 1
            guard openQuestions == 0 else { return }
            if isUnknown {
                driver?.isOff("systemd-logind did not report its sessions")
                return logind.comeAgain()
            }
            report()
            if mustAskAgain { askForEverything() }
        }
    }

    private func report() {
        driver?.isLive()
        driver?.report(.fact(.logins(logins)))
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

    func handle(_ signal: BusSignal) {
        switch (signal.interface, signal.member) {
        case (LogindSource.manager, "SessionNew"), (LogindSource.manager, "SessionRemoved"):
            askForEverything()
        case (LogindSource.manager, "PrepareForSleep"): prepare(\.isAsleep, signal)
        case (LogindSource.manager, "PrepareForShutdown"): prepare(\.isShuttingDown, signal)
        default:
            if let change = PropertyChange(signal) { propertiesHaveChanged(change, of: signal.path) }
        }
    }

    private func prepare(_ what: WritableKeyPath<Logins, Bool>, _ signal: BusSignal) {
        guard let isAboutTo = signal.arguments.first?.boolean else { return }
        logins[keyPath: what] = isAboutTo
        delays.allow(!logins.isEnding)
        if openQuestions == 0 { report() }
    }

    private func propertiesHaveChanged(_ change: PropertyChange, of path: String) {
        // Another user's, or one that is being asked for.
        guard change.interface == LogindSource.session, idOfPath[path] != nil else { return }
        // Answers that are under way were given after this, and say the same or what is newer.
        note(change.values, of: path)
        if !Set(change.invalidated).isDisjoint(with: ["Active", "LockedHint", "IdleHint", "State"]) {
            if openQuestions == 0 { askForSession(path) } else { mustAskAgain = true }
        } else if openQuestions == 0 {
            report()
        }
    }
}

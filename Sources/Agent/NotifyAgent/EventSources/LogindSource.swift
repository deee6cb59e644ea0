// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// What logind knows of the user's sessions: which are active, which are locked, and whether the machine goes to sleep.
/// See org.freedesktop.login1(5).
///
/// It looks at properties alone: the signals Lock and Unlock are requests, which no program need follow.
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
    private let timeAsleep: () -> Int64?
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

    /// How long the machine had slept when that was last looked at.
    private var knownSleep: Int64?
    /// Whether that said that the machine has woken, since it last fell asleep.
    private var hasWokenByClock = false
    /// Whether logind has said nothing of that: if it announces a sleep now, that may be the one that is over.
    private var mayBeLeftOver = false
    private var clock: ClockWatch?
    /// Asks again whether the machine is still about to sleep.
    private var timer: Int?
    /// Since when it is about to.
    private var sleepBegan = MonotonicTime(nanoseconds: 0)
    /// How often it has fallen asleep and woken, whatever else is forgotten.
    private var counts: (sleeps: UInt64, wakes: UInt64) = (0, 0)

    /// How long after the end of logind's delay it is doubtful that the machine still is about to sleep, in milliseconds.
    private static let doubt: Int64 = 30_000

    /// - Parameter timeAsleep: how long the machine has slept since its start, in nanoseconds; nil if that is unknown now.
    init(user: UInt32?, on bus: any ServiceBus, timeAsleep: @escaping () -> Int64? = MachineSleep.duration) {
        (self.user, self.bus, self.timeAsleep) = (user, bus, timeAsleep)
    }

    func begin(on driver: SourceDriver) {
        self.driver = driver
        knownSleep = timeAsleep()
        // Without it logind's word has to do.
        clock = try? ClockWatch(on: driver.loop) { [weak self] _ in self?.lookAtClock() }
        delays.live(on: driver.loop)
        bus.add(self)
    }

    func end() {
        bus.remove(self)
        delays.want([])
        forget(nil)
        delays.live(on: nil)
        (driver, clock) = (nil, nil)
    }

    /// Has logind wait with one of these until `letGo`, from now on, or no longer.
    func delay(_ wanted: Set<LogindDelays.Delay>) { delays.want(wanted) }

    /// All programs that are to know of the sleep or the shutdown that has begun know of it.
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
        driver?.loop.cancel(timer)
        counts = (logins.sleeps, logins.wakes)
        logins = Logins()
        (logins.sleeps, logins.wakes) = counts
        idOfPath = [:]
        openQuestions = 0
        (mustAskAgain, isUnknown, mayBeLeftOver) = (false, false, false)
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
            if let isAsleep = values["PreparingForSleep"]?.boolean { take(isAsleep: isAsleep) }
            if let isEnding = values["PreparingForShutdown"]?.boolean { logins.isShuttingDown = isEnding }
            if let limit = values["InhibitDelayMaxUSec"]?.uint64 { logins.longestDelay = limit }
            logins.find()
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
            // The known facts about it stay until the answer has come.
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

    /// Asks logind; when everything is answered, the result is reported.
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
        lookAtClock()
        switch (signal.interface, signal.member) {
        case (LogindSource.manager, "SessionNew"), (LogindSource.manager, "SessionRemoved"):
            askForEverything()
        case (LogindSource.manager, "PrepareForSleep"):
            if let isAboutTo = signal.arguments.first?.boolean { prepareForSleep(isAboutTo) }
        case (LogindSource.manager, "PrepareForShutdown"):
            if let isAboutTo = signal.arguments.first?.boolean {
                logins.find()
                logins.isShuttingDown = isAboutTo
                endingHasChanged()
            }
        default:
            if let change = PropertyChange(signal) { propertiesHaveChanged(change, of: signal.path) }
        }
    }

    // MARK: - Sleep

    /// Either signal may be missing or come twice: after a hibernation some versions of logind do not say that it is over, and
    /// elogind says everything twice.
    private func prepareForSleep(_ isAboutTo: Bool) {
        // Also if this comes before the first answer, it is a change.
        logins.find()
        guard isAboutTo else {
            mayBeLeftOver = false
            if logins.isAsleep { logins.wake() }
            return endingHasChanged()
        }
        if mayBeLeftOver { return askWhetherItSleeps() }
        if logins.isAsleep {
            // It can't delay for longer than that; so this is another sleep, and the last one is over.
            guard sleepBegan + longestDelay + 1_000 <= .now else { return }
            logins.wake()
        }
        fallAsleep()
        endingHasChanged()
    }

    /// A second announcement of elogind's, just before the machine slept, is read when it has woken. Then it is no
    /// longer true.
    private func askWhetherItSleeps() {
        ask { [self] logind, isAnswered in
            logind.properties(of: LogindSource.manager, at: LogindSource.path) { [self] values in
                if values?["PreparingForSleep"]?.boolean != false, !logins.isAsleep {
                    fallAsleep()
                    delays.allow(false)
                }
                isAnswered()
            }
        }
    }

    /// logind's answer to the question whether the machine is about to sleep.
    private func take(isAsleep: Bool) {
        if !isAsleep, logins.isAsleep { logins.wake() }
        // If the clock has said since that it has woken, the clock is right.
        if isAsleep, !logins.isAsleep, !hasWokenByClock { fallAsleep() }
    }

    private func fallAsleep() {
        (hasWokenByClock, mayBeLeftOver) = (false, false)
        sleepBegan = .now
        logins.fallAsleep()
        lookAgainLater()
    }

    /// In milliseconds.
    private var longestDelay: Int64 { Int64(min(logins.longestDelay / 1_000, 3_600_000)) }

    /// The machine has slept by now, or logind has forgotten to say that it does not.
    private func lookAgainLater() {
        driver?.loop.cancel(timer)
        timer = driver?.loop.after(longestDelay + LogindSource.doubt) { [weak self] in
            guard let self, logins.isAsleep else { return }
            askForEverything()
            lookAgainLater()
        }
    }

    /// Whether the machine has slept, and so woken, since the last look.
    private func lookAtClock() {
        guard let now = timeAsleep() else { return }
        defer { knownSleep = now }
        guard let knownSleep, now - knownSleep >= MachineSleep.shortest else { return }
        (hasWokenByClock, mayBeLeftOver) = (true, true)
        logins.wake()
        if logind != nil { endingHasChanged() }
    }

    private func endingHasChanged() {
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

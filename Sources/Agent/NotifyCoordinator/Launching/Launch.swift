// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// One entry at work: which names have been posted and are still due, and the progress of its program.
struct Launch: Hashable {
    enum Phase: Hashable {
        /// It is not known yet whether the program is running, or its names are not heard yet.
        case waking
        case idle
        /// Names were posted; more may come until the second time, and until the first one each post prolongs it.
        case settling(latest: Int64, until: Int64)
        /// It is about to be started, once all its names are heard again.
        case arming
        /// The start was requested; the time is the deadline for a reply, nil once there was one.
        case starting(answerBy: Int64?)
        case running
        /// It has been started too often; the time is when it may be started again.
        case limited(until: Int64)
        /// Nothing is heard.
        case off(reason: String)
    }

    /// How long the service manager may take to reply, in nanoseconds.
    static let timeLimit: Int64 = 90_000_000_000
    /// How many names are kept for one entry.
    static let maximumDue = 4_096

    let id: LaunchID
    var entry: LaunchEntry
    private(set) var phase = Phase.waking
    /// Whether the unit is active, activating or deactivating, or the name has an owner; nil if unknown.
    private(set) var isActive: Bool?
    /// Posted and still due, without those for which the start in progress was begun.
    private(set) var due = PendingNames()
    private(set) var begun: [NotifyName] = []
    /// When the latest of these was posted at the latest, in nanoseconds; and the same for all posts so far.
    private var begunPost: Int64 = 0
    private var latestPost: Int64 = 0
    /// Posted since the trigger, and not yet heard by the program.
    private(set) var missed = PendingNames()
    private(set) var observers = LaunchObservers()
    /// What its program heard by itself as far as the agent before this one knew, until it is known whether it runs.
    private(set) var heardBefore = Subjects()
    /// What the program was started for, until it has exited.
    private var cause: Set<NotifyName> = []
    /// What has been requested from the bus, and how many requests it has yet to confirm.
    private(set) var subscribed = Subjects()
    private(set) var unconfirmed = 0
    private var isAttached = false
    /// Whether the latest start ends the program first, and has not done so yet. Until then, the observers are those of the
    /// old program.
    private var endsFirst = false
    /// When it was started, as far as relevant to the limit.
    private(set) var recentStarts: [Int64] = []
    /// How often a start was requested, and how often it was started.
    private var lastNumber: UInt64 = 0
    private(set) var starts: UInt64 = 0
    /// Whether the last start failed through no fault of the program.
    private var isTryingAgain = false
    /// How often in a row the last start was canceled.
    private var cancellations = 0
    /// How often a canceled start is tried again: a client that cancels every one has the last word.
    private static let mostCancellations = 3
    private(set) var failures: UInt64 = 0
    /// How the program has failed before its start was known to have completed.
    private var earlyFailure: String?
    private(set) var lastResult = ""
    /// Whether its conditions hold. Due names wait for that.
    private var isAllowed: Bool
    /// Whether due names wait for the next agent, which is about to take over.
    private var isHeldBack: Bool

    init(id: LaunchID, entry: LaunchEntry, isHeldBack: Bool) {
        self.id = id
        self.entry = entry
        self.isHeldBack = isHeldBack
        isAllowed = entry.conditions.isEmpty
    }

    private var mayStart: Bool { isAllowed && !isHeldBack }

    var isBusy: Bool {
        switch phase {
        case .starting, .running: true
        default: false
        }
    }

    /// How many names are due.
    var dueCount: Int { due.count + begun.filter { !due.contains($0) }.count }

    /// When to act by the clock.
    var alarm: Int64? {
        switch phase {
        case .settling(_, let until): until
        case .limited(let until): until
        case .starting(let moment): moment
        default: nil
        }
    }

    /// Whether a start that is under way is carried out, whatever becomes of the agent.
    var isStartAccepted: Bool {
        if case .starting(.some) = phase { return !entry.action.needsManager }
        return true
    }

    // MARK: - Names

    /// Whether another post of the name would change nothing.
    private func isSatisfied(_ name: NotifyName) -> Bool {
        switch phase {
        case .starting, .running:
            missed.contains(name) && (entry.onBusy == .drop || due.contains(name))
        case .limited: due.contains(name)
        case .off: true
        case .waking, .idle, .settling, .arming: false
        }
    }

    /// Whether the running program is being ended, to be started again.
    var isReplacing: Bool {
        if case .starting = phase { return endsFirst }
        return false
    }

    /// Begins with what the agent before this one knew.
    mutating func inherit(_ heritage: LaunchHeritage, _ now: Int64) {
        for name in heritage.due.prefix(Launch.maximumDue) where entry.subjects.contains(name) { _ = due.insert(name) }
        for name in heritage.missed.prefix(Launch.maximumDue) where entry.subjects.contains(name) {
            _ = missed.insert(name)
        }
        // Names that are not in its file are of no use, and may be anything.
        heardBefore = Subjects(
            names: heritage.heard.names.filter { entry.subjects.contains($0) && !due.contains($0) },
            prefixes: heritage.heard.prefixes.intersection(entry.subjects.prefixes)
        )
        recentStarts = heritage.recentStarts.suffix(entry.limit.starts).filter { (0...now).contains($0) }
    }

    private var wanted: Subjects {
        if case .off = phase { return Subjects() }
        // The next program must be told what one hears that is about to be ended.
        let counts = !isReplacing && phase != .arming
        var wanted = Subjects(
            names: entry.subjects.names.filter { !(counts && observers.hear($0)) && !isSatisfied($0) }
        )
        wanted.prefixes = entry.subjects.prefixes.filter { !(counts && observers.hear($0)) }
        return wanted
    }

    /// Makes the bus deliver what is wanted now, and nothing else.
    private mutating func follow(_ effects: inout [Launcher.Effect]) {
        let wanted = wanted
        let (more, less) = (wanted.subtracting(subscribed), subscribed.subtracting(wanted))
        subscribed = wanted
        // A prefix may give way to a name, or the other way round: at every moment one of them is heard.
        if !more.isEmpty {
            unconfirmed += 1
            effects.append(.subscribe(id, more))
        }
        if !less.isEmpty { effects.append(.unsubscribe(id, less)) }
    }

    // MARK: - Start and stop

    /// - Parameter canAttach: whether there is something that says now whether the program runs.
    mutating func begin(canAttach: Bool = true, _ effects: inout [Launcher.Effect]) {
        phase = .waking
        isActive = nil
        follow(&effects)
        guard canAttach else { return }
        isAttached = true
        effects.append(.attach(id, entry))
    }

    /// The service manager has gone, or does not answer. What is due waits until it is back, and so does what is posted
    /// meanwhile: for the entry that is as if another agent took over.
    mutating func managerIsAway(_ now: Int64, _ effects: inout [Launcher.Effect]) {
        if case .off = phase { return }
        if isAttached { effects.append(.detach(id, entry)) }
        isAttached = false
        if !isStartAccepted { starts -= 1 }
        let heritage = heritage
        forgetNames()
        endsFirst = false
        rest(&effects)
        inherit(heritage, now)
        begin(canAttach: false, &effects)
    }

    mutating func turnOff(_ reason: String, _ effects: inout [Launcher.Effect]) {
        if isAttached { effects.append(.detach(id, entry)) }
        isAttached = false
        phase = .off(reason: reason)
        isActive = nil
        forgetNames()
        rest(&effects)
        follow(&effects)
    }

    private mutating func forgetNames() {
        (due, begun, missed) = (PendingNames(), [], PendingNames())
        observers.removeAll()
    }

    /// Adopts the current content of the file, with the same action as before.
    mutating func change(to entry: LaunchEntry, _ now: Int64, _ effects: inout [Launcher.Effect]) {
        if entry.conditions != self.entry.conditions { isAllowed = entry.conditions.isEmpty }
        self.entry = entry
        due.remove { !entry.subjects.contains($0) }
        missed.remove { !entry.subjects.contains($0) }
        begun.removeAll { !entry.subjects.contains($0) }
        switch phase {
        case .limited: arm(now, &effects)
        case .settling(let latest, let until):
            phase = .settling(latest: min(latest, now + 10 * entry.settle), until: min(until, now + entry.settle))
        default: break
        }
        goOn(now, &effects)
        follow(&effects)
    }

    /// Its conditions hold from now on, or not any more.
    mutating func allow(_ isAllowed: Bool, _ now: Int64, _ effects: inout [Launcher.Effect]) {
        self.isAllowed = isAllowed
        goOn(now, &effects)
        follow(&effects)
    }

    mutating func holdBack(_ isHeldBack: Bool, _ now: Int64, _ effects: inout [Launcher.Effect]) {
        self.isHeldBack = isHeldBack
        goOn(now, &effects)
        follow(&effects)
    }

    mutating func isSubscribed(_ failure: String?, _ now: Int64, _ effects: inout [Launcher.Effect]) {
        unconfirmed -= 1
        if let failure { return turnOff(failure, &effects) }
        // Due names may have been posted again while they were not heard.
        latestPost = now
        goOn(now, &effects)
        follow(&effects)
    }

    // MARK: - What happens

    mutating func heard(_ name: NotifyName, _ now: Int64, _ effects: inout [Launcher.Effect]) {
        if case .off = phase { return }
        // Its sender was identified after the entry had changed.
        if !entry.subjects.contains(name) { return }
        latestPost = now
        if !isReplacing, observers.hear(name) || observers.note(name) { return }
        note(name)
        if case .settling(let latest, _) = phase {
            phase = .settling(latest: latest, until: min(latest, now + entry.settle))
        }
        goOn(now, &effects)
        follow(&effects)
    }

    private mutating func note(_ name: NotifyName) {
        if isBusy, missed.count < Launch.maximumDue { _ = missed.insert(name) }
        if isBusy, entry.onBusy == .drop { return }
        if due.count < Launch.maximumDue { _ = due.insert(name) }
    }

    /// Does what can be done now.
    private mutating func goOn(_ now: Int64, _ effects: inout [Launcher.Effect]) {
        switch phase {
        case .waking:
            guard isActive != nil, unconfirmed == 0 else { return }
            endWaking()
            if isLeftAlone { return leaveAlone() }
            phase = isActive == true ? .running : .idle
            goOn(now, &effects)
        case .idle:
            if !due.isEmpty, mayStart { beginSettling(now, &effects) }
        case .running:
            if !due.isEmpty, mayStart, entry.onBusy == .restart { beginSettling(now, &effects) }
        case .settling(_, let until):
            if until <= now { arm(now, &effects) }
        case .limited(let until):
            if until <= now { arm(now, &effects) }
        case .arming:
            if isLeftAlone {
                leaveAlone()
            } else if !mayStart {
                phase = isActive == true ? .running : .idle
            } else if unconfirmed == 0 {
                start(now, &effects)
            }
        case .starting, .off: break
        }
    }

    /// It is known whether the program of the agent before this one runs.
    private mutating func endWaking() {
        if isActive == true {
            due.remove(heardBefore.contains)
            missed.remove(heardBefore.contains)
        } else {
            missed = PendingNames()
        }
        heardBefore = Subjects()
    }

    private mutating func beginSettling(_ now: Int64, _ effects: inout [Launcher.Effect]) {
        guard entry.settle > 0 else { return arm(now, &effects) }
        phase = .settling(latest: now + 10 * entry.settle, until: now + entry.settle)
    }

    /// Whether another client has started it in the meantime, and it is not to be restarted.
    private var isLeftAlone: Bool { isActive == true && entry.onBusy != .restart }

    private mutating func leaveAlone() {
        phase = .running
        guard entry.onBusy == .drop else { return }
        // It is told of these if it observes them, but not started once more.
        for name in due.take() { _ = missed.insert(name) }
    }

    /// Has all names heard again, as posts after the start must be noted.
    private mutating func arm(_ now: Int64, _ effects: inout [Launcher.Effect]) {
        if isLeftAlone { return leaveAlone() }
        guard mayStart else {
            phase = isActive == true ? .running : .idle
            return
        }
        let window = entry.limit.window
        recentStarts.removeAll { $0 + window <= now }
        if recentStarts.count >= entry.limit.starts {
            let place = recentStarts.count - entry.limit.starts
            phase = .limited(until: recentStarts[place] + window)
            return
        }
        phase = .arming
        follow(&effects)
        goOn(now, &effects)
    }

    private mutating func start(_ now: Int64, _ effects: inout [Launcher.Effect]) {
        if !due.isEmpty {
            // The next program is told what the one to be ended has not been told yet.
            for name in observers.takeLate() { _ = due.insert(name) }
        }
        begun = due.take()
        begunPost = latestPost
        guard let first = begun.first else {
            phase = isActive == true ? .running : .idle
            return
        }
        missed = PendingNames()
        for name in begun { _ = missed.insert(name) }
        rest(&effects)
        cause = Set(begun)
        earlyFailure = nil
        recentStarts.append(now)
        lastNumber += 1
        starts += 1
        let restarts = isActive == true
        endsFirst = restarts
        phase = .starting(answerBy: now + Launch.timeLimit)
        effects.append(.start(id, number: lastNumber, entry, first: first, restarts: restarts))
    }

    /// The service manager is working on it, and decides how long that takes.
    mutating func isAccepted(_ number: UInt64) {
        guard number == lastNumber, case .starting = phase else { return }
        phase = .starting(answerBy: nil)
    }

    mutating func ended(
        _ number: UInt64,
        _ outcome: Launcher.Outcome,
        _ now: Int64,
        _ effects: inout [Launcher.Effect]
    ) {
        guard number == lastNumber, case .starting = phase else { return }
        let wasReplacing = isReplacing
        let used = begun
        begun = []
        var outcome = outcome
        if case .begun(let time) = outcome { outcome = time < begunPost ? .wasRunning : .done }
        switch outcome {
        case .wasRunning where entry.onBusy != .drop:
            // Another client had started it, perhaps before they were posted.
            lastResult = "was running"
            restore(used)
        case .done, .begun, .wasRunning:
            lastResult = "done"
            if let failure = earlyFailure { programHasFailed(failure) }
        case .programFailed(let failure):
            programHasFailed(failure)
        case .neverRan(let reason) where isTryingAgain, .failed(let reason):
            failures += 1
            lastResult = reason
            effects.append(.complain(id, entry, reason))
        case .neverRan(let reason):
            lastResult = reason
            starts -= 1
            _ = recentStarts.popLast()
            restore(used)
        case .canceled where cancellations < Launch.mostCancellations:
            lastResult = "canceled"
            restore(used)
        case .canceled:
            failures += 1
            lastResult = "canceled"
            effects.append(.complain(id, entry, "its start was canceled \(cancellations + 1) times in a row"))
        }
        cancellations = outcome == .canceled && cancellations < Launch.mostCancellations ? cancellations + 1 : 0
        isTryingAgain = if case .neverRan = outcome { !isTryingAgain } else { false }
        phase = isActive == true ? .running : .idle
        if phase == .idle { programHasEnded(&effects) }
        if wasReplacing {
            // It is not known whether these belong to the old program, or to a new one.
            for (connection, names) in observers.tell(missed.names) { effects.append(.deliver(connection, names)) }
            missed.remove(observers.observe)
            due.remove(observers.observe)
        }
        goOn(now, &effects)
        follow(&effects)
    }

    /// Schedules another start for these, before what has come since.
    private mutating func restore(_ names: [NotifyName]) {
        let later = due.take()
        for name in names + later { _ = due.insert(name) }
    }

    mutating func note(
        isActive new: Bool,
        failure: String? = nil,
        _ now: Int64,
        _ effects: inout [Launcher.Effect]
    ) {
        if case .off = phase { return }
        // The bus keeps no order between the service manager and a program, so the program may have registered before
        // the agent learns that the unit was inactive until then. Only the end of a run is the end of its program.
        let hasEnded = isActive == true && !new
        isActive = new
        if hasEnded {
            // The one that is being replaced was ended, whatever it says to that.
            if let failure, !isReplacing, !cause.isEmpty { note(failure: failure) }
            endsFirst = false
            // It will not be told of these any more.
            for name in observers.dropMembers() { note(name) }
        }
        switch phase {
        case .idle where new: phase = .running
        case .running where !new:
            phase = .idle
            programHasEnded(&effects)
        case .settling, .limited, .arming:
            if hasEnded { programHasEnded(&effects) }
        default: break
        }
        goOn(now, &effects)
        follow(&effects)
    }

    private mutating func note(failure: String) {
        if case .starting = phase { earlyFailure = failure } else { programHasFailed(failure) }
    }

    private mutating func programHasFailed(_ failure: String) {
        failures += 1
        lastResult = failure
    }

    mutating func alarm(_ now: Int64, _ effects: inout [Launcher.Effect]) {
        if case .starting(let moment?) = phase, moment <= now {
            let seconds = Launch.timeLimit / 1_000_000_000
            ended(lastNumber, .failed("no answer after \(seconds) seconds"), now, &effects)
        } else {
            goOn(now, &effects)
            follow(&effects)
        }
    }

    /// Nothing of it is left.
    private mutating func programHasEnded(_ effects: inout [Launcher.Effect]) {
        missed = PendingNames()
        observers.dropCandidates()
        rest(&effects)
    }

    // MARK: - Work

    /// Whether a post of one of these is about to start the program, or what it has started has not exited.
    func isAtWork(on names: Set<NotifyName>) -> Bool {
        if !cause.isDisjoint(with: names) { return true }
        switch phase {
        case .settling, .arming: return due.names.contains(where: names.contains)
        case .waking, .idle, .starting, .running, .limited, .off: return false
        }
    }

    private mutating func rest(_ effects: inout [Launcher.Effect]) {
        if cause.isEmpty { return }
        cause = []
        effects.append(.workHasEnded)
    }

    // MARK: - The program observes

    /// A connection of the program observes these in total.
    ///
    /// - Parameter mark: behind which it hears them by itself; nil if it does so already.
    /// - Returns: what it has missed.
    mutating func observes(
        _ subjects: Subjects,
        _ connection: ConnectionID,
        behind mark: UInt64?,
        _ effects: inout [Launcher.Effect]
    ) -> [NotifyName] {
        if case .off = phase { return [] }
        let subjects = relevant(subjects)
        if isReplacing {
            let none = PendingNames()
            return observers.join(connection, subjects, behind: mark, missed: none, due: none)
        }
        let names = observers.join(connection, subjects, behind: mark, missed: missed, due: due)
        missed.remove(subjects.contains)
        // It hears them and was told of them, so there is no need to start it for them.
        due.remove(subjects.contains)
        follow(&effects)
        return names
    }

    /// A connection observes these in total, and it is not known whether it belongs to the program.
    ///
    /// - Returns: whether that matters.
    mutating func mayObserve(_ subjects: Subjects, _ connection: ConnectionID, behind mark: UInt64?) -> Bool {
        if isBusy { observers.mayJoin(connection, relevant(subjects), behind: mark, missed: missed, due: due) }
        return isBusy
    }

    /// Other names that a program observes do not matter, however many there are.
    private func relevant(_ subjects: Subjects) -> Subjects {
        // A prefix would have to be compared with all names each time.
        guard entry.subjects.prefixes.isEmpty else { return subjects }
        return Subjects(names: entry.subjects.names.filter(subjects.names.contains), prefixes: subjects.prefixes)
    }

    /// These are the program's connections, and no others that have registered so far.
    ///
    /// - Returns: what each has missed.
    mutating func programIsKnown(
        _ connections: [(ConnectionID, Subjects)],
        _ now: Int64,
        _ effects: inout [Launcher.Effect]
    ) -> [(ConnectionID, [NotifyName])] {
        if case .off = phase { return [] }
        // Another program may have passed on its bus name to this one, and run on.
        for name in observers.dropMembers(except: Set(connections.map(\.0))) { note(name) }
        var news: [(ConnectionID, [NotifyName])] = []
        for (connection, subjects) in connections {
            // One that existed before the start was requested has missed only what is to start it once more.
            let none = PendingNames()
            let names = observers.join(connection, relevant(subjects), behind: nil, missed: none, due: due)
            if !names.isEmpty { news.append((connection, names)) }
        }
        for (_, subjects) in connections {
            missed.remove(subjects.contains)
            due.remove(subjects.contains)
        }
        observers.dropCandidates()
        goOn(now, &effects)
        follow(&effects)
        return news
    }

    /// All posts that come from now on were made behind the mark.
    ///
    /// - Returns: what was posted in between.
    mutating func pass(_ mark: LaunchMark, _ effects: inout [Launcher.Effect]) -> [NotifyName] {
        let names = observers.pass(mark)
        follow(&effects)
        return names
    }

    mutating func hasLeft(_ connection: ConnectionID, _ now: Int64, _ effects: inout [Launcher.Effect]) {
        guard let names = observers.leave(connection) else { return }
        for name in names { note(name) }
        goOn(now, &effects)
        follow(&effects)
    }
}

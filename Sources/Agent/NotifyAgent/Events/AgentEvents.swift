// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Which names of the machine and the session are wanted, and what is known of them.
struct AgentEvents {
    var table: EventTable
    /// The groups of names that follow from facts, and from whose.
    let origins: [String: [String]]
    /// The wanted names of these groups.
    var derived: [String: Set<NotifyName>] = [:]
    /// The names whose state is to be the answer to open calls, by the number of the call.
    var questions: [UInt64: NotifyName] = [:]
    var logins = LoginEvents()
    var focus = FocusEvent()
    var focusTimer: Int?
    /// Whether there is a screen saver that says whether it is active.
    var hasScreenSaver = false
    var sleepDelay: SleepDelay?
    var holds = Holds()
    /// Posts that wait for state changes, in order.
    var waiting: [(number: UInt64, changes: [EventChange])] = []
    var lastWait: UInt64 = 0

    init(_ list: SourceList) {
        table = EventTable(list.names, aliases: list.aliases)
        origins = list.derived
    }

    /// Whether the event of the focus is wanted.
    var followsFocus: Bool { derived[SystemEvent.Source.focus.rawValue] != nil }
}

// Events of the machine and the session, as posts and states of names.
extension Agent {
    func handle(_ input: EventTable.Input) {
        for effect in events.table.handle(input, at: MonotonicTime.now.nanoseconds) { perform(effect) }
    }

    /// Replies to a request for the state of a name; for an event, once its source has reported.
    func answerState(of name: NotifyName, _ call: BusCall) {
        let id = openCalls.keep(call)
        guard events.table.names.contains(name) else { return handle(.getNameState(id, name)) }
        events.questions[id.number] = name
        handle(EventTable.Input.asked(name, id.number))
    }

    private func perform(_ effect: EventTable.Effect) {
        switch effect {
        case .start(let source, let wanted), .change(let source, let wanted):
            guard let origins = events.origins[source] else { return sources.want(source, by: .names, wanted) }
            events.derived[source] = wanted
            for origin in origins { sources.want(origin, by: .derived(source)) }
            tellLogins()
            tellFocus()
            followWishes()
        case .stop(let source):
            guard let origins = events.origins[source] else { return sources.release(source, by: .names) }
            events.derived[source] = nil
            for origin in origins { sources.release(origin, by: .derived(source)) }
            if !events.followsFocus {
                events.focus.rest()
                loop.cancel(events.focusTimer)
            }
            followWishes()
        case .set(let name, let state): handle(.eventState(name, state))
        case .post(let name, let isAlias):
            let observed = coordinator.observedNames
            guard isAlias ? observed.containsExactly(name) : observed.contains(name) else { return }
            link.post(name)
            events.table.hasPosted(name, wallClock: WallClock.now)
        case .answer(let number):
            if let name = events.questions.removeValue(forKey: number) { handle(.getNameState(CallID(number), name)) }
        case .alarm(let time): alarms.set(.events, at: time)
        }
    }

    /// What is known of sources that have just got a reader. They no longer rest, of which the coordinator may hear only
    /// after the event that it is carrying out.
    private var sourcesWithReader: SourceTable {
        var sources = coordinator.sources
        for entry in sources.entries where entry.condition == SourceSet.idle { sources.reset(entry.name, nil) }
        return sources
    }

    /// Other names that follow from facts are wanted, or fewer.
    private func followWishes() {
        logind?.delay(delays)
        followScreenSavers()
    }
}

// What follows from the facts of logind and of screen savers.
extension Agent {
    private var logind: LogindSource? { sources.source(LogindSource.self) }

    private var delays: Set<LogindDelays.Delay> {
        let wanted = events.derived[SystemEvent.Source.sleep.rawValue] ?? []
        return Set(
            (wanted.contains(LoginEvents.willSleep) ? [.sleep] : [])
                + (wanted.contains(LoginEvents.willShutDown) ? [.shutdown] : [])
        )
    }

    /// Handles facts from which names follow, before the coordinator does.
    ///
    /// - Returns: the posts to make once the state changes that they lead to are in effect.
    func applyFacts(_ news: [String: SourceNews]) -> [EventChange] {
        applyLogins(news["logind"]) + applyScreenSaver(news[ScreenSaverSource.name])
    }

    private func applyLogins(_ news: SourceNews?) -> [EventChange] {
        guard let news else { return [] }
        var after: [EventChange] = []
        if case .logins(let logins)? = news.fact {
            let old = events.logins.state
            let wasEnding = old.map { $0.isAsleep && $0.sleeps == logins.sleeps || $0.isShuttingDown } ?? false
            after = publish(events.logins.take(LoginState(logins, of: geteuid())))
            followScreenSavers()
            if !wasEnding, logins.isEnding { beginDelay(logins) }
            if !logins.isEnding { events.sleepDelay = nil }
        }
        if let condition = news.condition { tell(condition) }
        return after
    }

    /// Makes these posts once the pending changes are in effect.
    func postAfterChanges(_ changes: [EventChange]) {
        guard !changes.isEmpty else { return }
        events.lastWait += 1
        events.waiting.append((events.lastWait, changes))
        handle(Event.awaitChanges(events.lastWait))
    }

    /// The changes that were pending then have completed.
    func changesAreInForce(_ number: UInt64) {
        while let first = events.waiting.first, first.number <= number {
            events.waiting.removeFirst()
            publish(first.changes)
        }
    }

    /// - Returns: what is to be posted later.
    private func publish(_ changes: LoginEvents.Changes) -> [EventChange] {
        // Posts that wait for changes that are overtaken by now go out first.
        if changes.before.contains(where: \.isPosted) { postWhatWaits() }
        publish(changes.before)
        return changes.after
    }

    private func postWhatWaits() { changesAreInForce(.max) }

    private func publish(_ changes: [EventChange]) {
        for source in events.derived.keys.sorted() {
            let names = SystemEvent.Source(rawValue: source).flatMap { LoginEvents.names[$0] } ?? []
            let own = changes.filter { names.contains($0.name) }
            if !own.isEmpty { handle(EventTable.Input.reported(source, .found(own))) }
        }
    }

    private func tell(_ condition: SourceCondition) {
        if condition != .live { events.logins.loseLogind() }
        for source in events.derived.keys.sorted() where source != SystemEvent.Source.focus.rawValue {
            switch condition {
            case .live: handle(EventTable.Input.reported(source, .live))
            case .off where source == SystemEvent.Source.locker.rawValue && events.hasScreenSaver: break
            case .off(let reason): handle(EventTable.Input.reported(source, .off(reason)))
            }
        }
    }

    /// A source that is started learns what is already known.
    private func tellLogins() {
        guard let condition = sourcesWithReader.entries.first(where: { $0.name == "logind" })?.condition else {
            return
        }
        if condition == .live {
            guard let state = events.logins.state else { return }
            publish(LoginEvents.facts(state))
        }
        tell(condition)
    }
}

// What follows from the focus.
extension Agent {
    /// Handles what sources report, before the coordinator does: a program that loses the focus hears it before its
    /// state changes.
    func applyFocus(_ news: [String: SourceNews]) {
        guard events.followsFocus else { return }
        var sources = coordinator.sources
        _ = sources.note(news)
        tell(events.focus.take(sources, focusSources))
    }

    /// A source that is started learns what is already known.
    private func tellFocus() {
        guard events.followsFocus else { return }
        // Without an observer KWin has not been asked yet.
        if coordinator.sources.foremost == nil { sources.source(ShellSource.self)?.ask() }
        tell(events.focus.take(sourcesWithReader, focusSources))
    }

    private var focusSources: [String] { DecidingSource.ofFocus.filter(coordinator.sources.contains) }

    private func tell(_ report: FocusEvent.Report) {
        let source = SystemEvent.Source.focus.rawValue
        loop.cancel(events.focusTimer)
        events.focusTimer = nil
        switch report {
        case .nothing: break
        case .later:
            events.focusTimer = loop.after(FocusEvent.pause) { [unowned self] in
                tell(events.focus.take(coordinator.sources, focusSources, hasPaused: true))
            }
        case .change(let change):
            handle(EventTable.Input.reported(source, .found([change])))
            handle(EventTable.Input.reported(source, .live))
        case .unknown(let reason): handle(EventTable.Input.reported(source, .off(reason)))
        }
    }
}

// Screen savers, where logind does not know of the lock.
extension Agent {
    private func applyScreenSaver(_ news: SourceNews?) -> [EventChange] {
        guard let news else { return [] }
        if let condition = news.condition { events.hasScreenSaver = condition == .live }
        guard case .screenSaver(let isActive)? = news.fact else { return [] }
        let after = publish(events.logins.take(isSaverActive: isActive))
        if events.hasScreenSaver { handle(EventTable.Input.reported(SystemEvent.Source.locker.rawValue, .live)) }
        return after
    }

    private func followScreenSavers() {
        let locker = SystemEvent.Source.locker.rawValue
        if events.derived[locker] != nil, !events.logins.hasHinted {
            sources.want(ScreenSaverSource.name, by: .derived(locker))
        } else {
            sources.release(ScreenSaverSource.name, by: .derived(locker))
            events.hasScreenSaver = false
        }
    }
}

/// Delays sleep or shutdown, so that programs can prepare for it.
struct SleepDelay {
    /// The minimum time for observers, in nanoseconds.
    private static let shortest: Int64 = 1_000_000_000
    /// How long before the end of logind's own limit the delay is released, in nanoseconds.
    private static let margin: Int64 = 500_000_000
    /// More than any configuration says, in microseconds.
    private static let maximum: UInt64 = 3_600_000_000

    /// What was posted.
    let name: NotifyName
    /// The earliest and the latest time to continue, in nanoseconds of the monotonic clock.
    let earliest, latest: Int64
    /// Whether the bus has routed the post, so that it is known what starts.
    var isPassedOn = false

    init(_ logins: Logins, now: Int64) {
        name = LoginEvents.ending(logins)
        let longest = Int64(min(logins.longestDelay, SleepDelay.maximum)) * 1_000
        latest = now + max(0, longest - SleepDelay.margin)
        earliest = min(now + SleepDelay.shortest, latest)
    }
}

extension Agent {
    /// Programs have been notified that the machine goes to sleep, or shuts down.
    func beginDelay(_ logins: Logins) {
        let delay = SleepDelay(logins, now: MonotonicTime.now.nanoseconds)
        events.sleepDelay = delay
        alarms.set(.sleep, at: delay.earliest)
        let now = UInt64(max(0, MonotonicTime.now.nanoseconds))
        events.holds.begin(delay.name, now: now) { coordinator.id(of: $0).map(coordinator.hears) ?? false }
        // The agent hears its own posts, in order with the bus's replies.
        link.callBus("GetId", []) { [self] _ in
            guard events.sleepDelay?.latest == delay.latest else { return }
            events.sleepDelay?.isPassedOn = true
            endDelayIfOver()
        }
    }

    /// Lets the machine continue once all programs that were started for it have exited, and the others have had their
    /// time.
    func endDelayIfOver() {
        guard let delay = events.sleepDelay else { return }
        let now = MonotonicTime.now.nanoseconds
        guard now >= delay.earliest else { return }
        let isBusy =
            !delay.isPassedOn || launching?.isAtWork(on: [delay.name]) == true || events.holds.isHeld(delay.name)
        if isBusy, now < delay.latest { return alarms.set(.sleep, at: delay.latest) }
        events.sleepDelay = nil
        logind?.letGo()
    }
}

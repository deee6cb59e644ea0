// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames

// Events of the machine and the session, as posts and states of names.
extension Agent {
    func handle(_ input: EventTable.Input) {
        perform(eventPart.handle(input))
    }

    /// Replies to a request for the state of a name; for an event, once its source has reported.
    func answerState(of name: NotifyName, _ call: BusCall) {
        guard eventPart.names.contains(name) else {
            return handle(.getNameState(openCalls.keep(call), name))
        }
        perform(eventPart.ask(name, call))
    }

    private func perform(_ actions: [EventPart.Action]) {
        for action in actions {
            switch action {
            case .set(let name, let state): handle(.eventState(name, state))
            case .post(let name, let isAlias):
                let observed = coordinator.observedNames
                guard isAlias ? observed.containsExactly(name) : observed.contains(name) else { continue }
                link.post(name)
                eventPart.hasPosted(name)
            case .answer(let number):
                guard let (call, name) = eventPart.takeQuestion(number) else { continue }
                handle(.getNameState(openCalls.keep(call), name))
            case .alarm(let time): alarms.set(.events, at: time)
            case .derivedAreWanted:
                tellLogins()
                tellFocus()
                logind?.delay(delays)
                followScreenSavers()
            case .derivedAreNotWanted:
                if eventPart.derived[SystemEvent.Source.focus.rawValue] == nil {
                    focusEvent.rest()
                    loop.cancel(focusTimer)
                }
                logind?.delay(delays)
                followScreenSavers()
            }
        }
    }
}

// What follows from the facts of logind and of screen savers.
extension Agent {
    private var logind: LogindSource? { sources.source(LogindSource.self) }

    private var delays: Set<LogindDelays.Delay> {
        let wanted = eventPart.derived[SystemEvent.Source.sleep.rawValue] ?? []
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
            let old = loginEvents.state
            let wasEnding = old.map { $0.isAsleep && $0.sleeps == logins.sleeps || $0.isShuttingDown } ?? false
            after = publish(loginEvents.take(LoginState(logins, of: geteuid())))
            followScreenSavers()
            if !wasEnding, logins.isEnding { beginDelay(logins) }
            if !logins.isEnding { sleepDelay = nil }
        }
        if let condition = news.condition { tell(condition) }
        return after
    }

    /// Makes these posts once the pending changes are in effect.
    func postAfterChanges(_ changes: [EventChange]) {
        guard !changes.isEmpty else { return }
        lastWait += 1
        waiting.append((lastWait, changes))
        handle(Event.awaitChanges(lastWait))
    }

    /// The changes that were pending then have completed.
    func changesAreInForce(_ number: UInt64) {
        while let first = waiting.first, first.number <= number {
            waiting.removeFirst()
            publish(first.changes)
        }
    }

    /// - Returns: what is to be posted later.
    private func publish(_ changes: LoginEvents.Changes) -> [EventChange] {
        // What waits for changes that are overtaken by now goes out first.
        if changes.before.contains(where: \.isPosted) { postWhatWaits() }
        publish(changes.before)
        return changes.after
    }

    private func postWhatWaits() { changesAreInForce(.max) }

    private func publish(_ changes: [EventChange]) {
        for source in eventPart.derived.keys.sorted() {
            let names = SystemEvent.Source(rawValue: source).flatMap { LoginEvents.names[$0] } ?? []
            let own = changes.filter { names.contains($0.name) }
            if !own.isEmpty { handle(EventTable.Input.reported(source, .found(own))) }
        }
    }

    private func tell(_ condition: SourceCondition) {
        if condition != .live { loginEvents.loseLogind() }
        for source in eventPart.derived.keys.sorted() where source != SystemEvent.Source.focus.rawValue {
            switch condition {
            case .live: handle(EventTable.Input.reported(source, .live))
            case .off where source == SystemEvent.Source.locker.rawValue && hasScreenSaver: break
            case .off(let reason): handle(EventTable.Input.reported(source, .off(reason)))
            }
        }
    }

    /// A source that is started learns what is already known.
    private func tellLogins() {
        guard let condition = coordinator.sources.entries.first(where: { $0.name == "logind" })?.condition else {
            return
        }
        if condition == .live {
            guard let state = loginEvents.state else { return }
            publish(LoginEvents.facts(state))
        }
        tell(condition)
    }
}

// What follows from the focus.
extension Agent {
    /// Handles what sources report, before the coordinator does: who loses the focus hears it before the state changes.
    func applyFocus(_ news: [String: SourceNews]) {
        guard eventPart.derived[SystemEvent.Source.focus.rawValue] != nil else { return }
        var sources = coordinator.sources
        _ = sources.note(news)
        tell(focusEvent.take(sources, focusSources))
    }

    /// A source that is started learns what is already known.
    private func tellFocus() {
        guard eventPart.derived[SystemEvent.Source.focus.rawValue] != nil else { return }
        // Without an observer KWin has not been asked yet.
        if coordinator.sources.foremost == nil { sources.source(ShellSource.self)?.ask() }
        tell(focusEvent.take(coordinator.sources, focusSources))
    }

    private var focusSources: [String] { DecidingSource.ofFocus.filter(coordinator.sources.contains) }

    private func tell(_ report: FocusEvent.Report) {
        let source = SystemEvent.Source.focus.rawValue
        loop.cancel(focusTimer)
        focusTimer = nil
        switch report {
        case .nothing: break
        case .later:
            focusTimer = loop.after(FocusEvent.pause) { [unowned self] in
                tell(focusEvent.take(coordinator.sources, focusSources, hasPaused: true))
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
        if let condition = news.condition { hasScreenSaver = condition == .live }
        guard case .screenSaver(let isActive)? = news.fact else { return [] }
        let after = publish(loginEvents.take(isSaverActive: isActive))
        if hasScreenSaver { handle(EventTable.Input.reported(SystemEvent.Source.locker.rawValue, .live)) }
        return after
    }

    private func followScreenSavers() {
        let locker = SystemEvent.Source.locker.rawValue
        if eventPart.derived[locker] != nil, !loginEvents.hasHinted {
            sources.want(ScreenSaverSource.name, by: .derived(locker))
        } else {
            sources.release(ScreenSaverSource.name, by: .derived(locker))
            hasScreenSaver = false
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
        sleepDelay = delay
        alarms.set(.sleep, at: delay.earliest)
        // The agent hears its own posts, in order with the bus's replies.
        link.callBus("GetId", []) { [self] _ in
            guard sleepDelay?.latest == delay.latest else { return }
            sleepDelay?.isPassedOn = true
            endDelayIfOver()
        }
    }

    /// Lets the machine continue once all programs that were started for it have exited, and the others have had their
    /// time.
    func endDelayIfOver() {
        guard let delay = sleepDelay else { return }
        let now = MonotonicTime.now.nanoseconds
        guard now >= delay.earliest else { return }
        let isBusy = !delay.isPassedOn || launching?.isAtWork(on: [delay.name]) == true
        if isBusy, now < delay.latest { return alarms.set(.sleep, at: delay.latest) }
        sleepDelay = nil
        logind?.letGo()
    }
}

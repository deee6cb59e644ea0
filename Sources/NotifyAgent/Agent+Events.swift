// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyEvents
import NotifyNames

// Events of the machine and the session, as posts and states of names.
extension Agent {
    func handle(_ input: EventTable.Input) {
        perform(eventPart.handle(input))
    }

    /// Replies to a request for the state of a name; for an event, once its source has reported.
    func answerState(of name: NotifyName, _ call: BusCall) {
        guard eventPart.names.contains(name) else {
            return handle(.getNameState(face.keep(call), name))
        }
        perform(eventPart.ask(name, call))
    }

    private func perform(_ errands: [EventPart.Errand]) {
        for errand in errands {
            switch errand {
            case .set(let name, let state): handle(.eventState(name, state))
            case .post(let name, let isAlias):
                let observed = coordinator.observedNames
                guard isAlias ? observed.containsExactly(name) : observed.contains(name) else { continue }
                link.post(name)
                eventPart.hasPosted(name)
            case .answer(let number):
                guard let (call, name) = eventPart.takeQuestion(number) else { continue }
                handle(.getNameState(face.keep(call), name))
            case .alarm(let time): alarms.set(.events, at: time)
            case .factsAreWanted:
                startSources()
                tellLogins()
                sources.delay(delays)
                followScreenSavers()
            case .factsAreNotWanted:
                followScreenSavers()
                sources.delay(delays)
                restIfNobodyObserves()
            }
        }
    }
}

// What follows from logind's facts.
extension Agent {
    private var delays: Set<LogindDelays.Delay> {
        let wanted = eventPart.factNames[SystemEvent.Source.sleep.rawValue] ?? []
        return Set(
            (wanted.contains(LoginEvents.willSleep) ? [.sleep] : [])
                + (wanted.contains(LoginEvents.willShutDown) ? [.shutdown] : [])
        )
    }

    /// Handles what logind reports, before the coordinator does.
    ///
    /// - Returns: the posts to make once the state changes that it leads to are in effect.
    func takeLogins(_ news: SourceNews?) -> [EventChange] {
        guard let news else { return [] }
        var after: [EventChange] = []
        if case .logins(let logins)? = news.fact {
            let wasEnding = loginEvents.state.map { $0.isAsleep || $0.isShuttingDown } ?? false
            after = say(loginEvents.take(LoginState(logins, of: geteuid())))
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
            say(first.changes)
        }
    }

    /// - Returns: what is to be posted later.
    private func say(_ changes: LoginEvents.Changes) -> [EventChange] {
        // What waits for changes that are overtaken by now goes out first.
        if changes.before.contains(where: \.isPosted) { postWhatWaits() }
        say(changes.before)
        return changes.after
    }

    private func postWhatWaits() { changesAreInForce(.max) }

    private func say(_ changes: [EventChange]) {
        for source in eventPart.factNames.keys.sorted() {
            let names = SystemEvent.Source(rawValue: source).flatMap { LoginEvents.names[$0] } ?? []
            let own = changes.filter { names.contains($0.name) }
            if !own.isEmpty { handle(EventTable.Input.said(source, .found(own))) }
        }
    }

    private func tell(_ condition: SourceCondition) {
        if condition != .live { loginEvents.loseLogind() }
        for source in eventPart.factNames.keys.sorted() {
            switch condition {
            case .live: handle(EventTable.Input.said(source, .live))
            case .off where source == SystemEvent.Source.locker.rawValue && screenSavers.isThere: break
            case .off(let reason): handle(EventTable.Input.said(source, .off(reason)))
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
            say(LoginEvents.facts(state))
        }
        tell(condition)
    }
}

// Screen savers, where logind does not know of the lock.
extension Agent {
    func makeScreenSavers() -> ScreenSavers {
        ScreenSavers(session) { [unowned self] isActive in
            guard screenSavers.isFollowed else { return }
            let later = say(loginEvents.take(isSaverActive: isActive))
            if screenSavers.isThere {
                handle(EventTable.Input.said(SystemEvent.Source.locker.rawValue, .live))
            }
            postAfterChanges(later)
        }
    }

    private func followScreenSavers() {
        screenSavers.follow(eventPart.factNames[SystemEvent.Source.locker.rawValue] != nil && !loginEvents.hasHinted)
    }
}

/// Who wants to be woken when: the loop has one timer for all.
struct Alarms {
    enum Owner {
        case coordinator, events, launching, relaying
        /// The machine may go to sleep.
        case sleep
    }

    private let loop: EventLoop
    private let ring: () -> Void
    private var times: [Owner: Int64] = [:]
    private var timer: Int?

    init(on loop: EventLoop, ring: @escaping () -> Void) { (self.loop, self.ring) = (loop, ring) }

    /// A later call with the same owner replaces an earlier one.
    mutating func set(_ owner: Owner, at time: Int64) {
        times[owner] = time
        arm()
    }

    /// It rings.
    ///
    /// - Returns: whose time has come.
    mutating func take(now: Int64) -> [Owner] {
        let due = times.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
        for owner in due { times[owner] = nil }
        arm()
        return due
    }

    private mutating func arm() {
        loop.cancel(timer)
        timer = times.values.min().map { loop.at(MonotonicTime(nanoseconds: $0), ring) }
    }
}

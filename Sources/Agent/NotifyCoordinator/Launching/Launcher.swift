// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// Which programs are started for which names, and the progress of each.
///
/// A value, like the coordinator: it takes events, and returns effects. It has no clock, and knows neither D-Bus nor
/// the service manager. The rules are those of notifybus-launch(5).
package struct Launcher: Hashable {
    package enum Event: Sendable {
        /// The entries from now on.
        ///
        /// - Parameter heritage: what the agent before this one knew of them.
        case load([LaunchEntry], inheriting: [LaunchHeritage] = [])
        /// There is a service manager, or there is none for this reason. One that was there may come back.
        case manager(obstacle: String?)
        /// The result of `subscribe`.
        case subscribed(LaunchID, failure: String?)
        /// A post whose sender counts for these entries.
        case heard(NotifyName, [LaunchID])
        /// The unit of an entry is active, activating or deactivating; or it is not.
        ///
        /// - Parameter failure: how its program has failed.
        case activity(LaunchID, Bool, failure: String? = nil)
        /// The service manager has accepted the start.
        case accepted(LaunchID, number: UInt64)
        /// The start has completed.
        case ended(LaunchID, number: UInt64, Outcome)
        /// A connection of the program of these entries observes these in total.
        ///
        /// - Parameter isNew: whether the bus has just been given its rules for some of them, so that it has heard nothing
        ///   of these yet.
        case observes(ConnectionID, [LaunchID], Subjects, isNew: Bool)
        /// The same for a connection that may belong to a program of these entries.
        case mayObserve(ConnectionID, [LaunchID], Subjects, isNew: Bool)
        /// It is now known which of the observing connections belong to the entry's program.
        case programIsKnown(LaunchID, [(ConnectionID, Subjects)])
        /// The conditions of an entry hold from now on, or not any more.
        case conditions(LaunchID, hold: Bool)
        /// Another agent is about to take over, so that nothing is started any more; or it will not.
        case holdBack(Bool)
        /// The result of `mark`.
        case marked(LaunchMark)
        case left(ConnectionID)
        /// The time set by `alarm` has come.
        case alarm
    }

    package enum Outcome: Equatable, Sendable {
        case done
        /// Done, but perhaps another client has started it: it was last started at this time of the monotonic clock, in
        /// nanoseconds, or a little later.
        case begun(at: Int64)
        /// It was running already, so nothing was started.
        case wasRunning
        case failed(String)
        /// The program was started, and has failed before the service manager took it for started.
        case programFailed(String)
        /// The service manager itself has failed, before the program ran: it is retried once.
        case neverRan(String)
        case canceled
    }

    package enum Effect: Equatable, Sendable {
        /// Hear posts of these; ends in `subscribed`.
        case subscribe(LaunchID, Subjects)
        case unsubscribe(LaunchID, Subjects)
        /// Find out whether the program is running, and report when that changes; starts with `activity`.
        case attach(LaunchID, LaunchEntry)
        case detach(LaunchID, LaunchEntry)
        /// Start it; ends in `ended`.
        ///
        /// - Parameters:
        ///   - number: counts the starts of the entry.
        ///   - restarts: whether it is running, and must be stopped first.
        case start(LaunchID, number: UInt64, LaunchEntry, first: NotifyName, restarts: Bool)
        /// Inform a connection of what it has missed.
        case deliver(ConnectionID, [NotifyName])
        /// Find the point in the stream of posts from which the connection hears them itself; ends in `marked`.
        case mark(LaunchMark)
        /// A start has failed.
        case complain(LaunchID, LaunchEntry, String)
        /// A program that was started has exited: `isAtWork` may have changed.
        case workHasEnded
        /// Report `alarm` at this time of the monotonic clock, in nanoseconds; it replaces an earlier one.
        case alarm(at: Int64)
    }

    /// An entry, as shown to others.
    package struct Report: Sendable {
        package let id: LaunchID
        package let entry: LaunchEntry
        package let state: String
        /// Why it is off, or can't be started now; or empty.
        package let reason: String
        package let starts: UInt64
        package let failures: UInt64
        package let due: Int
        package let lastResult: String
    }

    /// Whether the bus has a service manager.
    private enum Manager: Hashable {
        case unknown
        case present
        case missing(reason: String)
        /// It was there.
        case away(reason: String)

        init(_ obstacle: String?, after old: Manager) {
            switch (obstacle, old) {
            case (nil, _): self = .present
            case (let reason?, .present), (let reason?, .away): self = .away(reason: reason)
            case (let reason?, .unknown), (let reason?, .missing): self = .missing(reason: reason)
            }
        }
    }

    private(set) var launches: [LaunchID: Launch] = [:]
    private var manager = Manager.unknown
    private var isHeldBack = false
    private var lastNumber: UInt64 = 0
    private var lastMark: UInt64 = 0
    private var lastAlarm: Int64?

    package init() {}

    package var isEmpty: Bool { launches.isEmpty }

    /// Whether there is a service manager, even if it is away for the moment.
    var hasManager: Bool {
        switch manager {
        case .present, .away: true
        case .unknown, .missing: false
        }
    }

    /// Whether it is not known yet whether the program of an entry runs, or not all of its names are heard.
    package func isWaking(_ id: LaunchID) -> Bool { launches[id]?.phase == .waking }

    /// Whether the program of an entry is being ended, to be started again.
    package func isReplacing(_ id: LaunchID) -> Bool { launches[id]?.isReplacing == true }

    /// The entries that a post of a name concerns, and whose posts count for each.
    package func entries(for name: NotifyName) -> [(LaunchID, LaunchEntry.Trust)] {
        launches.values.filter { $0.entry.subjects.contains(name) }.map { ($0.id, $0.entry.trust) }
    }

    package var entries: [(LaunchID, LaunchEntry)] { launches.values.map { ($0.id, $0.entry) } }

    /// Whether a post of one of these is about to start something, or what it has started has not exited.
    package func isAtWork(on names: Set<NotifyName>) -> Bool { launches.values.contains { $0.isAtWork(on: names) } }

    /// Sorted by title.
    package var reports: [Report] {
        launches.values.sorted { $0.entry.title < $1.entry.title }.map { launch in
            var reason = ""
            let state: String
            switch launch.phase {
            case .waking:
                state = "waking"
                if case .away(let why) = manager, launch.entry.action.needsManager { reason = why }
            case .idle: state = "idle"
            case .settling: state = "settling"
            case .arming, .starting: state = "starting"
            case .running: state = "running"
            case .limited: state = "limited"
            case .off(let why): (state, reason) = ("off", why)
            }
            return Report(
                id: launch.id,
                entry: launch.entry,
                state: state,
                reason: reason,
                starts: launch.starts,
                failures: launch.failures,
                due: launch.dueCount,
                lastResult: launch.lastResult
            )
        }
    }

    /// Everything that entries would hear.
    package var subjects: Subjects {
        launches.values.reduce(into: Subjects()) { all, launch in
            if launch.entry.isEnabled { all.formUnion(launch.entry.subjects) }
        }
    }

    /// The names whose states entries depend on.
    package var conditions: Set<NotifyName> {
        launches.values.reduce(into: []) { all, launch in
            if launch.entry.isEnabled { all.formUnion(launch.entry.conditions.map(\.name)) }
        }
    }

    /// Handles an event.
    ///
    /// - Returns: the effects, to be carried out in order.
    package mutating func handle(_ event: Event, at moment: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        take(event, moment.nanoseconds, &effects)
        let next = launches.values.compactMap(\.alarm).min()
        if let next, next != lastAlarm { effects.append(.alarm(at: next)) }
        lastAlarm = next
        return effects
    }

    private mutating func take(_ event: Event, _ now: Int64, _ effects: inout [Effect]) {
        switch event {
        case .load(let entries, let heritage): load(entries, heritage, now, &effects)
        case .manager(let obstacle):
            let old = manager
            manager = Manager(obstacle, after: old)
            guard manager != old else { return }
            for id in launches.keys.sorted() where launches[id]?.entry.action.needsManager == true {
                switch manager {
                case .away: if old == .present { launches[id]?.managerIsAway(now, &effects) }
                case .unknown, .present, .missing: begin(id, &effects)
                }
            }
        case .subscribed(let id, let failure): launches[id]?.isSubscribed(failure, now, &effects)
        case .heard(let name, let ids): for id in ids { launches[id]?.heard(name, now, &effects) }
        case .activity(let id, let isActive, let failure):
            launches[id]?.note(isActive: isActive, failure: failure, now, &effects)
        case .accepted(let id, let number): launches[id]?.isAccepted(number)
        case .ended(let id, let number, let outcome): launches[id]?.ended(number, outcome, now, &effects)
        case .observes(let connection, let ids, let subjects, let isNew):
            let mark = isNew ? nextMark(connection) : nil
            var missed = PendingNames()
            for id in ids {
                let names = launches[id]?.observes(subjects, connection, behind: mark?.number, &effects) ?? []
                for name in names { _ = missed.insert(name) }
            }
            if !missed.isEmpty { effects.append(.deliver(connection, missed.names)) }
            if let mark, !ids.isEmpty { effects.append(.mark(mark)) }
        case .mayObserve(let connection, let ids, let subjects, let isNew):
            let mark = isNew ? nextMark(connection) : nil
            var matters = false
            for id in ids {
                matters = launches[id]?.mayObserve(subjects, connection, behind: mark?.number) == true || matters
            }
            if let mark, matters { effects.append(.mark(mark)) }
        case .programIsKnown(let id, let connections):
            for (connection, names) in launches[id]?.programIsKnown(connections, now, &effects) ?? [] {
                effects.append(.deliver(connection, names))
            }
        case .conditions(let id, let hold): launches[id]?.allow(hold, now, &effects)
        case .holdBack(let isHeldBack):
            self.isHeldBack = isHeldBack
            for id in launches.keys.sorted() { launches[id]?.holdBack(isHeldBack, now, &effects) }
        case .marked(let mark):
            var late = PendingNames()
            for id in launches.keys.sorted() {
                for name in launches[id]?.pass(mark, &effects) ?? [] { _ = late.insert(name) }
            }
            if !late.isEmpty { effects.append(.deliver(mark.connection, late.names)) }
        case .left(let connection):
            for id in launches.keys.sorted() { launches[id]?.hasLeft(connection, now, &effects) }
        case .alarm:
            lastAlarm = nil
            for id in launches.keys.sorted() { launches[id]?.alarm(now, &effects) }
        }
    }

    private mutating func nextMark(_ connection: ConnectionID) -> LaunchMark {
        lastMark += 1
        return LaunchMark(connection, number: lastMark)
    }

    private mutating func begin(_ id: LaunchID, _ effects: inout [Effect]) {
        guard let entry = launches[id]?.entry else { return }
        if !entry.isEnabled {
            launches[id]?.turnOff("enabled = no", &effects)
            return
        }
        switch manager {
        case .missing(let reason) where entry.action.needsManager: launches[id]?.turnOff(reason, &effects)
        // It begins as soon as that is known.
        case .unknown where entry.action.needsManager: break
        case .away where entry.action.needsManager: launches[id]?.begin(canAttach: false, &effects)
        case .present, .missing, .unknown, .away: launches[id]?.begin(&effects)
        }
    }

    private mutating func load(
        _ entries: [LaunchEntry],
        _ heritage: [LaunchHeritage],
        _ now: Int64,
        _ effects: inout [Effect]
    ) {
        // The agent before this one has had a service manager: what it has handed over is kept until that is back.
        if manager == .unknown, heritage.contains(where: \.action.needsManager) { manager = .away(reason: "") }
        let heritage = Dictionary(heritage.map { ($0.title, $0) }) { first, _ in first }
        var old = Dictionary(launches.values.map { ($0.entry.title, $0) }) { first, _ in first }
        for entry in entries {
            guard let before = old.removeValue(forKey: entry.title) else {
                add(entry, heritage[entry.title], now, &effects)
                continue
            }
            if before.entry == entry { continue }
            if before.entry.action == entry.action, before.entry.isEnabled == entry.isEnabled {
                launches[before.id]?.change(to: entry, now, &effects)
            } else {
                remove(before.id, &effects)
                add(entry, nil, now, &effects)
            }
        }
        for launch in old.values.sorted(by: { $0.id < $1.id }) { remove(launch.id, &effects) }
        // Nobody follows it any more, and what is found out once somebody does counts from the beginning.
        if !launches.values.contains(where: \.entry.runsByManager) { manager = .unknown }
    }

    private mutating func add(
        _ entry: LaunchEntry,
        _ heritage: LaunchHeritage?,
        _ now: Int64,
        _ effects: inout [Effect]
    ) {
        lastNumber += 1
        let id = LaunchID(lastNumber)
        launches[id] = Launch(id: id, entry: entry, isHeldBack: isHeldBack)
        // It is about what was in the file then.
        if let heritage, heritage.action == entry.action { launches[id]?.inherit(heritage, now) }
        begin(id, &effects)
    }

    private mutating func remove(_ id: LaunchID, _ effects: inout [Effect]) {
        launches[id]?.turnOff("its file was removed", &effects)
        launches[id] = nil
    }
}

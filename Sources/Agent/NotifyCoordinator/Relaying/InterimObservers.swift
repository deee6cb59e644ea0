// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Programs behind the relay for which the agent itself hears posts while one agent follows another: from the moment that
/// the old agent is about to hand over until the relay of the new one hears for them.
///
/// It hears only their prefixes: a program delivers each name that it observes once when it registers with another relay.
struct InterimObservers: Hashable {
    struct Observer: Hashable {
        /// The unique name of its connection.
        let name: String
        let user: UInt32
        /// What the agent hears for it.
        var prefixes: Set<NamePrefix> = []
        /// Those of them that the relay hears as well: it gets what is pending for them once that is complete.
        var leaving: Set<NamePrefix> = []
        /// Those that it had here, and has got everything of.
        var left: Set<NamePrefix> = []
        var pending = PendingNames()
        /// How many names were lost because there was no room.
        var dropped: UInt64 = 0

        mutating func keep(_ name: NotifyName, _ ledger: inout Ledger) {
            // The relay hears those that have left.
            guard !pending.contains(name), !left.contains(where: { $0.begins(name) }) else { return }
            if pending.hasRoom, ledger.keepPending(name, of: user) {
                _ = pending.insert(name)
            } else {
                dropped += 1
            }
        }
    }

    private var observers: [ConnectionID: Observer] = [:]
    private var numbers: [String: ConnectionID] = [:]
    /// Those some of whose prefixes are not subscribed yet.
    private var unsubscribed: Set<ConnectionID> = []
    /// Those that the relay of this agent hears for as well, as long as it is there.
    private(set) var doubled: Set<ConnectionID> = []
    /// How often there was something more to subscribe to.
    private(set) var additions = 0

    var isSubscribed: Bool { unsubscribed.isEmpty }
    var all: [ConnectionID] { observers.keys.sorted() }
    var names: [(ConnectionID, String)] { observers.map { ($0.key, $0.value.name) } }
    func id(of name: String) -> ConnectionID? { numbers[name] }
    subscript(id: ConnectionID) -> Observer? { observers[id] }

    /// - Returns: whether some of these were not subscribed to for it.
    mutating func add(_ prefixes: Set<NamePrefix>, for name: String, of user: UInt32, _ id: ConnectionID) -> Bool {
        let old = observers[id]?.prefixes ?? []
        guard !prefixes.isSubset(of: old) else { return false }
        numbers[name] = id
        observers[id, default: Observer(name: name, user: user)].prefixes.formUnion(prefixes)
        observers[id]?.left.subtract(prefixes)
        unsubscribed.insert(id)
        additions += 1
        return true
    }

    mutating func isSubscribed(_ id: ConnectionID) { unsubscribed.remove(id) }

    mutating func isDoubled(_ id: ConnectionID) { doubled.insert(id) }

    mutating func forgetDropped(_ id: ConnectionID) { observers[id]?.dropped = 0 }

    /// - Returns: whether some of these were not leaving.
    mutating func leave(_ prefixes: Set<NamePrefix>, _ id: ConnectionID) -> Bool {
        guard let observer = observers[id] else { return false }
        observers[id]?.leaving.formUnion(prefixes.intersection(observer.prefixes))
        return observers[id]?.leaving.count != observer.leaving.count
    }

    /// - Returns: those that were not leaving, for which nothing is kept any more.
    mutating func keepLeaving(_ id: ConnectionID) -> Set<NamePrefix> {
        guard let observer = observers[id] else { return [] }
        observers[id]?.prefixes = observer.leaving
        return observer.prefixes.subtracting(observer.leaving)
    }

    /// All that was posted before the relay has heard the leaving prefixes has been kept.
    ///
    /// - Returns: these prefixes, and what is pending for them.
    mutating func takeLeaving(
        _ id: ConnectionID,
        _ ledger: inout Ledger
    ) -> (prefixes: Set<NamePrefix>, names: [NotifyName]) {
        guard let observer = observers[id], !observer.leaving.isEmpty else { return ([], []) }
        var index = PrefixIndex<Void>()
        for prefix in observer.leaving { index[prefix] = () }
        var names: [NotifyName] = []
        observers[id]?.pending.remove { name in
            var isLeaving = false
            index.forEachPrefix(of: name) { _, _ in isLeaving = true }
            if isLeaving { names.append(name) }
            return isLeaving
        }
        observers[id]?.prefixes.subtract(observer.leaving)
        observers[id]?.left.formUnion(observer.leaving)
        observers[id]?.leaving = []
        ledger.forgetPending(names, of: observer.user)
        return (observer.leaving, names)
    }

    /// A name that begins with one of its prefixes was posted.
    mutating func keep(_ name: NotifyName, for id: ConnectionID, _ ledger: inout Ledger) {
        // In its place: what is pending must not be copied for each post.
        observers[id]?.keep(name, &ledger)
    }

    /// - Returns: what it was, and what was kept for it.
    mutating func remove(_ id: ConnectionID, _ ledger: inout Ledger) -> Observer? {
        guard let observer = observers.removeValue(forKey: id) else { return nil }
        numbers[observer.name] = nil
        unsubscribed.remove(id)
        doubled.remove(id)
        ledger.forgetPending(observer.pending.names, of: observer.user)
        return observer
    }
}

extension Coordinator {
    /// Whether the bus has confirmed everything that the agent hears for programs behind the relay.
    package var hearsForRelayed: Bool { interim.isSubscribed }

    /// Grows each time that there is more to hear for them.
    package var interimAdditions: Int { interim.additions }

    /// Programs behind the relay that the agent before this one has handed over, and that have not registered here yet.
    package func interimID(of name: String) -> ConnectionID? { interim.id(of: name) }

    /// The agent is about to hand over.
    mutating func hearForRelayed() {
        for id in directory.all {
            guard let observer = directory[id], observer.isRelayed, observer.state != .background else { continue }
            let prefixes = observer.subjects.prefixes
            let known = interim.id(of: observer.name)
            let id = known ?? directory.nextID()
            guard interim.add(prefixes, for: observer.name, of: observer.user, id) else { continue }
            if known == nil { interim.isDoubled(id) }
            perform(proxies.subscribe(Subjects(prefixes: prefixes), for: id, of: observer.user))
        }
    }

    /// The agent does not hand over after all: its relay goes on.
    mutating func leaveToRelay() {
        for id in interim.doubled.sorted() {
            // The relay has passed on what there was no room for here.
            interim.forgetDropped(id)
            endInterim(id)
        }
    }

    /// What is handed over of programs behind the relay. A post that the relay has yet to pass on is to be added.
    var relayedHeritage: [Heritage.Relayed] {
        interim.all.compactMap { id in
            interim[id].map { observer in
                Heritage.Relayed(
                    name: observer.name,
                    user: observer.user,
                    prefixes: observer.prefixes,
                    pending: observer.pending.names
                )
            }
        }
    }

    /// Keeps for a program behind the relay what the agent before this one has kept.
    mutating func inherit(_ relayed: Heritage.Relayed) {
        guard interim.id(of: relayed.name) == nil else { return }
        let id = directory.nextID()
        guard interim.add(relayed.prefixes, for: relayed.name, of: relayed.user, id) else { return }
        for name in relayed.pending { interim.keep(name, for: id, &ledger) }
        awaitedHeritage?.insert(id)
        emit(.watchEnd(id, name: relayed.name))
    }

    /// Hears for it from now on.
    mutating func hearInherited(_ id: ConnectionID) {
        guard let observer = interim[id] else { return }
        perform(proxies.subscribe(Subjects(prefixes: observer.prefixes), for: id, of: observer.user))
    }

    /// The relay hears all that a program has told it so far, which may be only a part. Prefixes that it no longer observes it
    /// never tells.
    mutating func relayHears(for name: String) {
        guard let id = interim.id(of: name), let known = directory.id(of: name).flatMap({ directory[$0] }) else {
            return
        }
        if known.state == .background { return endInterim(id) }
        // Its relay has never ceased to hear for it.
        if interim.doubled.contains(id) { return }
        guard let prefixes = interim[id]?.prefixes.intersection(known.subjects.prefixes),
            interim.leave(prefixes, id)
        else { return }
        // What was posted before the relay heard these comes to the agent before the answer to its next question to the bus.
        perform(proxies.subscribe(Subjects(prefixes: prefixes), for: id, of: known.user, synchronizes: true))
    }

    /// A program has registered some time ago, and told all that it observes.
    mutating func hasToldAll(_ name: String) {
        guard let id = interim.id(of: name), directory.id(of: name) != nil else { return }
        if interim.doubled.contains(id) { return }
        let rest = interim.keepLeaving(id)
        if interim[id]?.prefixes.isEmpty == true { return endInterim(id) }
        perform(proxies.unsubscribe(Subjects(prefixes: rest), for: id))
    }

    /// The prefixes of a program behind the relay are subscribed, or something prevented it.
    mutating func interimIsSubscribed(_ id: ConnectionID) {
        guard let observer = interim[id] else { return }
        interim.isSubscribed(id)
        isInherited(id)
        let (prefixes, pending) = interim.takeLeaving(id, &ledger)
        if interim[id]?.prefixes.isEmpty == true {
            endInterim(id)
        } else if !prefixes.isEmpty {
            perform(proxies.unsubscribe(Subjects(prefixes: prefixes), for: id))
        }
        guard !prefixes.isEmpty, let known = directory.id(of: observer.name).flatMap({ directory[$0] }) else { return }
        // The relay keeps them until the program has read them, or drops them if it is in the background.
        let names = pending.filter(known.subjects.contains)
        if !names.isEmpty { emit(.deliver(known.recipient, names)) }
    }

    /// A program in the background hears nothing, then or later.
    mutating func silenceInterim(of name: String) {
        if let id = interim.id(of: name) { endInterim(id) }
    }

    /// A program behind the relay hears by itself, or has left the bus.
    mutating func endInterim(_ id: ConnectionID) {
        guard let observer = interim.remove(id, &ledger) else { return }
        perform(proxies.unsubscribeAll(for: id))
        isInherited(id)
        emit(.ignoreEnd(id, name: observer.name))
        if let receiver = directory.id(of: observer.name) { directory[receiver]?.dropped += observer.dropped }
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The connections that remember the states of names, so that the next agent learns them if this one dies: for each
/// name, one of those that observe it.
struct StateWitnesses: Hashable {
    /// How many states a connection is told at once.
    static let part = 1_000

    private var witnesses: [NotifyName: ConnectionID] = [:]
    /// The names whose states connections have yet to be told.
    private var untold: [ConnectionID: Set<NotifyName>] = [:]

    subscript(name: NotifyName) -> ConnectionID? {
        get { witnesses[name] }
        set { witnesses[name] = newValue }
    }

    var isEmpty: Bool { witnesses.isEmpty }

    func hasToBeTold(_ id: ConnectionID) -> Bool { untold[id] != nil }

    mutating func mustBeTold(_ id: ConnectionID, _ name: NotifyName) { untold[id, default: []].insert(name) }

    /// What a connection is told next.
    mutating func next(_ id: ConnectionID) -> [NotifyName] {
        guard let all = untold.removeValue(forKey: id) else { return [] }
        let sorted = all.sorted { $0.string < $1.string }
        if sorted.count > StateWitnesses.part { untold[id] = Set(sorted.dropFirst(StateWitnesses.part)) }
        return Array(sorted.prefix(StateWitnesses.part))
    }

    /// - Returns: what the connection was to be told.
    @discardableResult
    mutating func forget(_ id: ConnectionID) -> [NotifyName] { untold.removeValue(forKey: id).map(Array.init) ?? [] }
}

extension Coordinator {
    /// States were set, or the connections that remembered them no longer do.
    mutating func haveStatesKept(of names: [NotifyName]) {
        var open: Set<NotifyName> = []
        for name in names {
            guard nameStates.entry(of: name) != nil else {
                witnesses[name] = nil
                continue
            }
            let witness = witnesses[name].flatMap { directory[$0] }
            if let witness, canKeepStates(witness), witness.subjects.names.contains(name) {
                haveStateKept(of: name, by: witness)
            } else {
                witnesses[name] = nil
                open.insert(name)
            }
        }
        // Those that listen come first: others should be left alone.
        for listens in [true, false] {
            for id in directory.all where !open.isEmpty {
                guard let observer = directory[id], (observer.state == .foreground) == listens else { continue }
                keepStates(of: open, by: id)
                open = open.filter { witnesses[$0] == nil }
            }
        }
    }

    /// A connection observes these, or can be asked again: it remembers the states that no other does.
    mutating func keepStates(of names: Set<NotifyName>, by id: ConnectionID) {
        guard !nameStates.isEmpty, let observer = directory[id], canKeepStates(observer) else { return }
        let own = observer.subjects.names
        let common = names.count < own.count ? names.filter(own.contains) : own.filter(names.contains)
        for name in nameStates.known(among: common)
        where witnesses[name] == nil && maySetState(of: name, observer.user) {
            haveStateKept(of: name, by: observer)
        }
    }

    private mutating func haveStateKept(of name: NotifyName, by observer: ObservingConnection) {
        witnesses[name] = observer.id
        witnesses.mustBeTold(observer.id, name)
        // The next call begins when the last one is answered.
        if !window.hasBegun(.states(observer.id)) {
            window.enqueue(.states(observer.id), nil, of: observer.owner)
        }
    }

    /// Whether it would do so: until it has been told that it is registered, it does not know this agent.
    private func canKeepStates(_ observer: ObservingConnection) -> Bool {
        !observer.isRelayed && !observer.isParked && observer.inheritance == .none && !observer.isRegistering
            && directory[process: observer.process]?.freezing.isStopped == false
    }

    /// A connection has gone, no longer observes these names, or has been stopped.
    mutating func noLongerKeepsStates(_ id: ConnectionID, of names: Set<NotifyName>) {
        if witnesses.isEmpty { return }
        haveStatesKept(of: Array(names.filter { witnesses[$0] == id }))
    }

    /// It is the turn of a connection to be told what it is to remember.
    mutating func tellStates(_ id: ConnectionID) {
        guard let observer = directory[id], canKeepStates(observer) else {
            window.hasAnswered(.states(id))
            return haveStatesKept(of: witnesses.forget(id))
        }
        let states = witnesses.next(id).compactMap { name in
            nameStates.entry(of: name).map { Heritage.State(name: name, entry: $0) }
        }
        if states.isEmpty { return window.hasAnswered(.states(id)) }
        emit(.keepStates(observer.recipient, states))
    }

    mutating func statesAreKept(_ id: ConnectionID) {
        window.hasAnswered(.states(id))
        if let observer = directory[id], witnesses.hasToBeTold(id) {
            window.enqueue(.states(id), nil, of: observer.owner)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What an agent knows and its successor would learn from no one else.
package struct Heritage: Hashable, Sendable {
    /// A connection that is suspended, or that was parked.
    package struct Connection: Hashable, Sendable {
        package var name = ""
        package var process: ProcessID
        package var program = ""
        package var subjects = Subjects()
        package var isParked = false
        package var state = LifecycleState.suspended
        /// Its state once its process continues, if it is parked.
        package var stateAfterParking = LifecycleState.foreground
        package var pending: [NotifyName] = []
        package var dropped: UInt64 = 0
        package var reportedDropped: UInt64 = 0
        package var since: UInt64 = 0
        package var person: LifecycleState?
        package var decision = Decision(.suspended, by: .person)
        package var followsDesktop = false

        package init(process: ProcessID) { self.process = process }
    }

    package struct Process: Hashable, Sendable {
        package var id: ProcessID
        package var wish: LifecycleState?
        package var isReleased = false
        package var report: LifecycleState?
        /// On whose behalf it is frozen; nil if it is not.
        package var frozenFor: UInt32?

        package init(_ id: ProcessID) { self.id = id }

        fileprivate var isWorthRemembering: Bool { wish != nil || isReleased || report != nil }
    }

    /// The state that a program has set for a name.
    package struct State: Hashable, Sendable {
        package var name: NotifyName
        package var entry: NameStateTable.Entry

        package init(name: NotifyName, entry: NameStateTable.Entry) {
            self.name = name
            self.entry = entry
        }
    }

    /// A connection that hears by the relay, and for which the agent hears prefixes itself until it hears by the next one.
    package struct Relayed: Hashable, Sendable {
        package var name: String
        package var user: UInt32
        package var prefixes: Set<NamePrefix>
        package var pending: [NotifyName]

        package init(name: String, user: UInt32, prefixes: Set<NamePrefix>, pending: [NotifyName] = []) {
            (self.name, self.user, self.prefixes, self.pending) = (name, user, prefixes, pending)
        }

        /// Adds names that the relay has yet to pass on, to come first.
        package mutating func add(_ unread: [NotifyName]) {
            var index = PrefixIndex<Void>()
            for prefix in prefixes { index[prefix] = () }
            var names = PendingNames()
            for name in unread { index.forEachPrefix(of: name) { _, _ in _ = names.insert(name) } }
            for name in pending { _ = names.insert(name) }
            pending = names.take()
        }
    }

    package var connections: [Connection] = []
    package var relayed: [Relayed] = []
    package var processes: [Process] = []
    package var states: [State] = []
    package var areNapsOff = false

    package init() {}
}

// How a successor gets what this agent knows.
extension Coordinator {
    /// Whether no change is under way, so that everything can be handed over.
    package var isAtRest: Bool {
        heirs.isEmpty && directory.processes.values.allSatisfy(\.freezing.isAtRest)
            && directory.observers.values.allSatisfy { observer in
                observer.isRelayed || observer.canBeInherited || observer.isSettledListener
            }
    }

    /// What is to be handed over now. A connection whose state is just changing is left out: it registers with the next
    /// agent as if this one had died.
    package var heritage: Heritage {
        var heritage = Heritage()
        // Decisions for the others count once they register.
        var processes = Set(directory.processes.values.filter(\.isWorthRemembering).map(\.id))
        for id in directory.all {
            guard let observer = directory[id], observer.canBeInherited, heirs.heir(of: id) == nil, !heirs.isHeir(id)
            else { continue }
            var connection = Heritage.Connection(process: observer.process)
            connection.name = observer.name
            connection.program = observer.program
            connection.subjects = observer.subjects
            connection.isParked = observer.isParked
            connection.state = observer.state
            connection.stateAfterParking = observer.stateAfterParking
            connection.pending = observer.pending.names
            (connection.dropped, connection.reportedDropped) = (observer.dropped, observer.reportedDropped)
            connection.since = observer.since
            connection.person = observer.person
            connection.decision = observer.decision
            connection.followsDesktop = observer.followsDesktop
            heritage.connections.append(connection)
            processes.insert(observer.process)
        }
        for id in processes.sorted() {
            guard let process = directory[process: id] else { continue }
            var entry = Heritage.Process(id)
            (entry.wish, entry.isReleased, entry.report) = (process.wish, process.isReleased, process.report)
            // It is a whole, or it is not known well enough to stay stopped.
            let isWhole =
                !process.connections.isEmpty && process.connections.allSatisfy { directory[$0]?.canBeInherited == true }
            entry.frozenFor = isWhole ? process.freezing.frozenFor : nil
            heritage.processes.append(entry)
        }
        heritage.relayed = relayedHeritage
        heritage.states = nameStates.all.map { Heritage.State(name: $0, entry: $1) }
        heritage.areNapsOff = naps.isOff
        return heritage
    }

    /// Takes over from the agent before this one. A connection that it does not know to have gone stays suspended until it
    /// registers.
    mutating func inherit(_ heritage: Heritage, _ facts: [Newcomer.ProcessFacts]) {
        awaitedHeritage = []
        for state in heritage.states where !configuration.events.contains(state.name) {
            nameStates.inherit(state.entry, of: state.name, now: UInt64(max(0, now.nanoseconds)))
        }
        if heritage.areNapsOff { perform(naps.turn(off: true, now: now.nanoseconds)) }
        let facts = Dictionary(facts.map { ($0.id, $0) }) { first, _ in first }
        for connection in heritage.connections {
            guard let facts = facts[connection.process], directory.id(of: connection.name) == nil,
                connection.isParked || connection.state == .suspended
            else { continue }
            inherit(connection, of: facts)
        }
        for relayed in heritage.relayed { inherit(relayed) }
        // Only now: the first of them may have no names, and it is not the last that is waited for.
        for id in (awaitedHeritage ?? []).sorted() {
            if let observer = directory[id] { subscribe(observer.subjects, for: id, then: .inheritance) }
            hearInherited(id)
        }
        for process in heritage.processes {
            if directory[process: process.id] == nil {
                guard process.isWorthRemembering, let facts = facts[process.id], facts.isWatched else { continue }
                directory.insert(ObservingProcess(facts))
            }
            directory[process: process.id]?.wish = process.wish
            directory[process: process.id]?.isWishInherited = true
            directory[process: process.id]?.isReleased = process.isReleased
            if let report = process.report { directory[process: process.id]?.report = report }
            directory[process: process.id]?.freezing = Freezing(frozenFor: process.frozenFor)
        }
        // A decider may be unknown here, as naps are.
        reconsider(directory.all)
        if awaitedHeritage?.isEmpty == true { heritageIsSubscribed() }
    }

    private mutating func inherit(_ connection: Heritage.Connection, of process: Newcomer.ProcessFacts) {
        do throws(Refusal) {
            try ledger.checkConnection(of: process.id.user)
            try ledger.observe(connection.subjects, by: Ledger.Holder(user: process.id.user))
        } catch { return }
        if directory.observers.isEmpty { emit(.observersCome) }
        if directory[process: process.id] == nil { directory.insert(ObservingProcess(process)) }
        let isFirst = directory[process: process.id]?.connections.isEmpty == true
        var statement = Newcomer.Statement(connection.subjects)
        statement.state = connection.state
        statement.program = connection.program
        statement.followsDesktop = connection.followsDesktop
        let newcomer = Newcomer(
            name: connection.name,
            user: process.id.user,
            process: process,
            hasSocket: false,
            statement: statement
        )
        var observer = ObservingConnection(newcomer, id: directory.nextID(), agentUser: configuration.user, now: now)
        let id = observer.id
        observer.since = connection.since
        (observer.dropped, observer.reportedDropped) = (connection.dropped, connection.reportedDropped)
        let isSuspended = connection.state == .suspended
        observer.transition = Transition(
            connection.state,
            isProxied: isSuspended,
            isEntering: isSuspended && !connection.isParked
        )
        observer.inheritance = .whole
        if connection.isParked {
            observer.parking = .parked
            observer.stateAfterParking = connection.stateAfterParking
        }
        believe(connection.decision.decider.name, connection.decision.state, of: &observer)
        observer.person = connection.person
        observer.decision = connection.decision
        directory.insert(observer)
        ledger.connectionCame(of: observer.user)
        observedNames.insert(observer.subjects)
        if !connection.isParked { emit(.begin(id)) }
        if isFirst { emit(.present(observer.process)) }
        for name in connection.pending where connection.subjects.contains(name) { _ = keep(name, for: id) }
        if isSuspended { awaitedHeritage?.insert(id) }
    }

    /// The names of an inherited connection are subscribed, or it has gone.
    mutating func isInherited(_ id: ConnectionID) {
        guard awaitedHeritage?.remove(id) != nil, awaitedHeritage?.isEmpty == true else { return }
        heritageIsSubscribed()
    }

    private mutating func heritageIsSubscribed() {
        awaitedHeritage = nil
        emit(.isInherited)
    }

    /// Each of the names is delivered to them on resume, posted or not.
    mutating func heritageIsPartial() {
        for id in directory.all where directory[id]?.inheritance == .whole {
            directory[id]?.inheritance = .partial
            // A parked one relies on what it is told here.
            if let observer = directory[id], observer.isParked { directory[id]?.comingBack.gaps = observer.subjects }
        }
    }
}

extension ObservingConnection {
    /// Whether another agent can take it over: it hears nothing, and nothing is under way.
    fileprivate var canBeInherited: Bool {
        guard !isRelayed, proxyWaiters.isEmpty, deliveries.isEmpty, comingBack.gaps.isEmpty else { return false }
        if isParked { return parking == .parked }
        if inheritance != .none { return inheritance == .whole }
        return transition.isSettled && state == .suspended && transition.isCollecting
    }

    /// Whether it listens, or is in the background: then it tells another agent all that there is to know.
    fileprivate var isSettledListener: Bool {
        !isParked && transition.isSettled && state != .suspended && deliveries.isEmpty && proxyWaiters.isEmpty
    }
}

extension Freezing {
    fileprivate var isAtRest: Bool { step == .running || step == .frozen }
    fileprivate var frozenFor: UInt32? { step == .frozen ? wish : nil }
}

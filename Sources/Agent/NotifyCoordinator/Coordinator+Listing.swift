// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

extension Coordinator {
    /// A connection, as shown to others.
    package struct Entry: Sendable {
        package let id: ConnectionID
        package let name: String
        package let process: ProcessID
        package let user: UInt32
        package let program: String
        package let application: String
        package let state: LifecycleState
        package let isParked: Bool
        package let subjects: Subjects
        package let pending: Int
        package let dropped: UInt64
        package let since: UInt64
        package let decider: Decider
        package let hasFocus: Bool
    }

    package struct Totals: Sendable {
        package var observers = 0
        package var processes = 0
        package var foreground = 0
        package var background = 0
        package var suspended = 0
        package var parked = 0
        package var held = 0
    }

    /// Every connection, in the order of registration.
    package var list: [Entry] { directory.all.compactMap { entry(of: $0) } }

    /// The unique name of every connection, including those that have yet to register with the relay.
    package var connectionNames: [(id: ConnectionID, name: String)] {
        let observers = directory.observers.values.map { ($0.id, $0.name) }
        return (observers + interim.names).sorted { $0.0 < $1.0 }
    }

    package func entry(of id: ConnectionID) -> Entry? {
        guard let observer = directory[id], let process = directory[process: observer.process] else { return nil }
        let focus = sources.focus(pid: process.id.pid, application: process.application, user: process.id.user)
        let isParked = if case .parked = observer.parking { true } else { false }
        return Entry(
            id: id,
            name: observer.name,
            process: process.id,
            user: observer.user,
            program: observer.program,
            application: process.application,
            state: observer.state,
            isParked: isParked,
            subjects: observer.subjects,
            pending: observer.pending.count + (observer.comingBack.isUnderWay ? observer.comingBack.names.count : 0),
            dropped: observer.dropped.addingSaturated(observer.reportedDropped),
            since: observer.since,
            decider: observer.decision.decider,
            hasFocus: focus?.hasIt ?? false
        )
    }

    package var totals: Totals {
        var totals = Totals()
        totals.observers = directory.observers.count
        totals.processes = directory.processes.count
        totals.held = proxies.table.count
        for observer in directory.observers.values {
            switch observer.state {
            case .foreground: totals.foreground += 1
            case .background: totals.background += 1
            case .suspended: totals.suspended += 1
            }
            if case .parked = observer.parking { totals.parked += 1 }
        }
        return totals
    }

    // MARK: - Identities

    package func id(of name: String) -> ConnectionID? { directory.id(of: name) }
    package func name(of id: ConnectionID) -> String? { directory[id]?.name }
    package func isRelayed(_ id: ConnectionID) -> Bool { directory[id]?.isRelayed ?? false }
    /// The state of a name; nil if it is an event's and not known.
    package func knownState(of name: NotifyName) -> UInt64? {
        configuration.events.contains(name) ? eventStates[name] : nameStates[name]
    }

    /// Whether a connection hears posts.
    package func hears(_ id: ConnectionID) -> Bool { directory[id]?.state == .foreground }
    package func user(of name: String) -> UInt32? { directory.id(of: name).flatMap { directory[$0]?.user } }
    package func subjects(of id: ConnectionID) -> Subjects? { directory[id]?.subjects }
    package func connections(of process: ProcessID) -> [ConnectionID] { directory.connections(of: process) }
    package func process(of id: ConnectionID) -> ProcessID? { directory[id]?.process }
    package func facts(of process: ProcessID) -> Newcomer.ProcessFacts? { directory[process: process]?.facts }
    package var processes: [ProcessID] { directory.processes.keys.sorted() }
}

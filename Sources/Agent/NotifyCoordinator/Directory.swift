// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The registered observers, and what persons have set for them.
struct Directory: Hashable {
    /// An application of one user: on the system bus several users may run the same one.
    private struct Application: Hashable {
        let id: String
        let user: UInt32
    }

    /// Includes parked ones.
    private(set) var observers: [ConnectionID: ObservingConnection] = [:]
    private var numbers: [String: ConnectionID] = [:]
    private(set) var processes: [ProcessID: ObservingProcess] = [:]
    /// Processes that have, or had, the same number; except for brief moments there is only one.
    private var byPid: [Int32: Set<ProcessID>] = [:]
    /// What persons have set for applications and not released.
    private var applicationWishes: [Application: LifecycleState] = [:]
    private var lastNumber: UInt64 = 0
    /// How many connections still have a state from an earlier agent.
    private var remembered = 0

    func id(of name: String) -> ConnectionID? { numbers[name] }

    /// Never set to nil: see `remove`.
    subscript(id: ConnectionID) -> ObservingConnection? {
        get { observers[id] }
        _modify {
            count(id, -1)
            defer { count(id, 1) }
            yield &observers[id]
        }
    }

    /// Counts a connection among those for which the bus may queue posts, and those that are remembered.
    private mutating func count(_ id: ConnectionID, _ sign: Int) {
        guard let observer = observers[id] else { return }
        if observer.mayBeQueuedFor { processes[observer.process]?.queued += sign }
        if observer.isRemembered { remembered += sign }
    }

    /// Changes several things of a connection, if it exists.
    ///
    /// - Returns: the result of the change.
    @discardableResult
    mutating func change<Result>(_ id: ConnectionID, _ change: (inout ObservingConnection) -> Result) -> Result? {
        self[id]?.changed(by: change)
    }

    subscript(process id: ProcessID) -> ObservingProcess? {
        get { processes[id] }
        _modify { yield &processes[id] }
    }

    /// All connections, in the order of registration.
    var all: [ConnectionID] { observers.keys.sorted() }

    mutating func nextID() -> ConnectionID {
        lastNumber += 1
        return ConnectionID(lastNumber)
    }

    mutating func insert(_ process: ObservingProcess) {
        processes[process.id] = process
        byPid[process.id.pid, default: []].insert(process.id)
    }

    mutating func insert(_ observer: ObservingConnection) {
        observers[observer.id] = observer
        numbers[observer.name] = observer.id
        processes[observer.process]?.connections.insert(observer.id)
        count(observer.id, 1)
    }

    mutating func remove(_ id: ConnectionID) -> ObservingConnection? {
        count(id, -1)
        guard let observer = observers.removeValue(forKey: id) else { return nil }
        if numbers[observer.name] == id { numbers[observer.name] = nil }
        processes[observer.process]?.connections.remove(id)
        return observer
    }

    mutating func remove(_ process: ObservingProcess) {
        processes[process.id] = nil
        byPid[process.id.pid]?.remove(process.id)
        if byPid[process.id.pid]?.isEmpty == true { byPid[process.id.pid] = nil }
        let id = process.application
        if !applicationWishes.isEmpty, !processes.values.contains(where: { $0.application == id }) {
            for key in applicationWishes.keys where key.id == id { applicationWishes[key] = nil }
        }
    }

    // MARK: - Targets

    func connections(of target: Target) -> [ConnectionID] {
        switch target {
        case .connection(let name): numbers[name].map { [$0] } ?? []
        case .process(let pid): (byPid[pid] ?? []).sorted().flatMap(connections(of:))
        case .application(let id):
            processes.values.filter { $0.application == id }.map(\.id).sorted().flatMap(connections(of:))
        }
    }

    func connections(of process: ProcessID) -> [ConnectionID] { processes[process]?.connections.sorted() ?? [] }

    func process(of id: ConnectionID) -> ObservingProcess? { observers[id].flatMap { processes[$0.process] } }

    func processes(of connections: some Sequence<ConnectionID>) -> [ProcessID] {
        Set(connections.compactMap { observers[$0]?.process }).sorted()
    }

    /// The processes of these connections, and those that are the same to the kernel: a process may have connections as
    /// more than one user, and is stopped with all of them.
    func wholes(of connections: some Sequence<ConnectionID>) -> [ProcessID] {
        Set(processes(of: connections).flatMap(same(as:))).sorted()
    }

    func same(as id: ProcessID) -> [ProcessID] {
        (byPid[id.pid] ?? []).filter { $0.startTime == id.startTime }.sorted()
    }

    /// Processes that had this number before, and whose exit has not been noticed yet.
    func earlier(than id: ProcessID) -> [ProcessID] {
        (byPid[id.pid] ?? []).filter { $0.startTime != id.startTime }.sorted()
    }

    // MARK: - Set by persons

    /// Remembers what a person has set, for later processes. nil if it was released.
    mutating func note(_ state: LifecycleState?, for target: Target, of user: UInt32) {
        switch target {
        case .connection: break
        case .process(let pid):
            for id in byPid[pid] ?? [] where id.user == user {
                processes[id]?.wish = state
                processes[id]?.isWishInherited = false
                processes[id]?.isReleased = state == nil
            }
        case .application(let id):
            applicationWishes[Application(id: id, user: user)] = state
            for (key, process) in processes where process.application == id && key.user == user {
                processes[key]?.wish = nil
                processes[key]?.isReleased = false
            }
        }
    }

    /// Forgets everything set for processes and applications of a user; nil means all users.
    mutating func forgetWishes(of user: UInt32?) {
        for key in applicationWishes.keys where user == nil || key.user == user { applicationWishes[key] = nil }
        for key in processes.keys where user == nil || key.user == user {
            processes[key]?.wish = nil
            processes[key]?.isReleased = false
        }
    }

    /// What a person has set that applies to a new connection of a process.
    ///
    /// - Parameter isNew: whether the connection itself reports nothing about an earlier agent.
    func wish(for process: ObservingProcess, isNew: Bool) -> LifecycleState? {
        let application = Application(id: process.application, user: process.id.user)
        // A connection that was there when it was set knows better what became of it since.
        if let wish = process.wish, isNew || !process.isWishInherited { return wish }
        if !process.isReleased, let wish = applicationWishes[application] { return wish }
        // A restarted agent knows no requests, but it sees what they had led to.
        guard isNew, remembered > 0 else { return nil }
        var relatives = process.connections.compactMap { observers[$0] }.filter(\.isRemembered)
        if relatives.isEmpty, !application.id.isEmpty {
            relatives = processes.values.filter { $0.application == application.id && $0.id.user == application.user }
                .flatMap(\.connections).compactMap { observers[$0] }.filter(\.isRemembered)
        }
        let states = Set(relatives.map(\.person))
        return states.count == 1 ? states.first ?? nil : nil
    }
}

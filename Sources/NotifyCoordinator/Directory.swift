// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Who has registered, and what persons have set for whom.
struct Directory {
    /// An application of one user: on the bus of the machine several users may run the same one.
    private struct Application: Hashable {
        let id: String
        let user: UInt32
    }

    /// Also those that are parked.
    private(set) var observers: [ConnectionID: Observer] = [:]
    private var numbers: [String: ConnectionID] = [:]
    private(set) var processes: [ProcessID: ObservedProcess] = [:]
    /// Processes that have, or had, the same number; but for a moment it is one.
    private var byPid: [Int32: Set<ProcessID>] = [:]
    /// What persons have set for applications, and have not released.
    private var applicationWishes: [Application: LifecycleState] = [:]
    private var lastNumber: UInt64 = 0

    func id(of name: String) -> ConnectionID? { numbers[name] }

    subscript(id: ConnectionID) -> Observer? {
        get { observers[id] }
        _modify { yield &observers[id] }
    }

    subscript(process id: ProcessID) -> ObservedProcess? {
        get { processes[id] }
        _modify { yield &processes[id] }
    }

    /// All connections, in the order in which they came.
    var all: [ConnectionID] { observers.keys.sorted() }

    mutating func nextID() -> ConnectionID {
        lastNumber += 1
        return ConnectionID(lastNumber)
    }

    mutating func insert(_ process: ObservedProcess) {
        processes[process.id] = process
        byPid[process.id.pid, default: []].insert(process.id)
    }

    mutating func insert(_ observer: Observer) {
        observers[observer.id] = observer
        numbers[observer.name] = observer.id
        processes[observer.process]?.connections.insert(observer.id)
    }

    mutating func remove(_ id: ConnectionID) -> Observer? {
        guard let observer = observers.removeValue(forKey: id) else { return nil }
        if numbers[observer.name] == id { numbers[observer.name] = nil }
        processes[observer.process]?.connections.remove(id)
        return observer
    }

    mutating func remove(_ process: ObservedProcess) {
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

    func process(of id: ConnectionID) -> ObservedProcess? { observers[id].flatMap { processes[$0.process] } }

    func processes(of connections: some Sequence<ConnectionID>) -> [ProcessID] {
        Set(connections.compactMap { observers[$0]?.process }).sorted()
    }

    // MARK: - What persons have set

    /// Remembers what a person has set, for those that come later. nil if it was released.
    mutating func note(_ state: LifecycleState?, for target: Target, of user: UInt32) {
        switch target {
        case .connection: break
        case .process(let pid):
            for id in byPid[pid] ?? [] where id.user == user {
                processes[id]?.wish = state
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

    /// Forgets all that was set for processes and applications of a user; nil means all users.
    mutating func forgetWishes(of user: UInt32?) {
        for key in applicationWishes.keys where user == nil || key.user == user { applicationWishes[key] = nil }
        for key in processes.keys where user == nil || key.user == user {
            processes[key]?.wish = nil
            processes[key]?.isReleased = false
        }
    }

    /// What a person has set that counts for a new connection of a process.
    func wish(for process: ObservedProcess) -> LifecycleState? {
        let application = Application(id: process.application, user: process.id.user)
        if let wish = process.wish { return wish }
        if !process.isReleased, let wish = applicationWishes[application] { return wish }
        // A restarted agent knows no wishes, but it sees what they had led to before.
        var relatives = process.connections.compactMap { observers[$0] }.filter(\.isRemembered)
        if relatives.isEmpty, !application.id.isEmpty {
            relatives = processes.values.filter { $0.application == application.id && $0.id.user == application.user }
                .flatMap(\.connections).compactMap { observers[$0] }.filter(\.isRemembered)
        }
        let states = Set(relatives.map(\.person))
        return states.count == 1 ? states.first ?? nil : nil
    }

    /// Forgets what this agent has remembered only until it decides itself.
    mutating func forgetMemory(of id: ConnectionID) {
        observers[id]?.isRemembered = false
        observers[id]?.remembered = nil
    }
}

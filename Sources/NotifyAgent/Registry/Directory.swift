// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// Who has registered.
struct Directory {
    /// An application of one user: on the bus of the machine several users may run the same one.
    private struct Application: Hashable {
        let id: String
        let user: UInt32
    }

    /// By unique name; also those that are parked.
    private(set) var connections: [String: ManagedConnection] = [:]
    private var byNumber: [UInt64: ManagedConnection] = [:]
    private(set) var processes: [ProcessHandle.Key: ManagedProcess] = [:]
    private var processesByNumber: [UInt64: ManagedProcess] = [:]
    /// One for each user that a process has connections of.
    private var processesByPID: [pid_t: [ManagedProcess]] = [:]
    /// What persons have set for applications, and have not released.
    private var applicationWishes: [Application: LifecycleState] = [:]
    private var lastNumber: UInt64 = 0

    subscript(name: String) -> ManagedConnection? { connections[name] }
    subscript(number number: UInt64) -> ManagedConnection? { byNumber[number] }

    func process(number: UInt64) -> ManagedProcess? { processesByNumber[number] }
    func processes(_ pid: pid_t) -> [ManagedProcess] { processesByPID[pid] ?? [] }

    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    mutating func insert(_ connection: ManagedConnection) {
        connections[connection.name] = connection
        byNumber[connection.number] = connection
        insert(connection.process)
        connection.process.connections[connection.number] = connection
    }

    private mutating func insert(_ process: ManagedProcess) {
        guard processesByNumber.updateValue(process, forKey: process.number) == nil else { return }
        processes[process.handle.key] = process
        processesByPID[process.pid, default: []].append(process)
    }

    mutating func remove(_ connection: ManagedConnection) {
        if connections[connection.name] === connection { connections[connection.name] = nil }
        byNumber[connection.number] = nil
        connection.process.connections[connection.number] = nil
    }

    mutating func remove(_ process: ManagedProcess) {
        if processes[process.handle.key] === process { processes[process.handle.key] = nil }
        processesByNumber[process.number] = nil
        processesByPID[process.pid]?.removeAll { $0 === process }
        if processesByPID[process.pid]?.isEmpty == true { processesByPID[process.pid] = nil }
        let id = process.application
        if !processes.values.contains(where: { $0.application == id }) {
            for key in applicationWishes.keys where key.id == id { applicationWishes[key] = nil }
        }
    }

    /// Whether a connection observes a name. Prefixes do not count: whoever observes them does not know the name.
    func isObserved(_ name: NotifyName) -> Bool {
        connections.values.contains { $0.subjects.names.contains(name) }
    }

    func connections(of target: Target) -> [ManagedConnection] {
        switch target {
        case .connection(let name): connections[name].map { [$0] } ?? []
        case .process(let pid): processes(pid).flatMap { Array($0.connections.values) }
        case .application(let id): connections.values.filter { $0.process.application == id }
        }
    }

    /// Remembers what a person has set, for those that come later. nil if it was released.
    mutating func note(_ state: LifecycleState?, for target: Target, user: UInt32) {
        switch target {
        case .connection: break
        case .process(let pid):
            for process in processes(pid) where process.user == user {
                process.wish = state
                process.isReleased = state == nil
            }
        case .application(let id):
            applicationWishes[Application(id: id, user: user)] = state
            for process in processes.values where process.application == id && process.user == user {
                process.wish = nil
                process.isReleased = false
            }
        }
    }

    /// Forgets all that was set for processes and applications of a user; nil means all users.
    mutating func forgetWishes(of user: UInt32?) {
        for key in applicationWishes.keys where user == nil || key.user == user { applicationWishes[key] = nil }
        for process in processes.values where user == nil || process.user == user {
            process.wish = nil
            process.isReleased = false
        }
    }

    /// What a person has set that counts for a new connection of a process.
    func wish(for process: ManagedProcess) -> LifecycleState? {
        let application = Application(id: process.application, user: process.user)
        if let wish = process.wish { return wish }
        if !process.isReleased, let wish = applicationWishes[application] { return wish }
        // A restarted agent knows no wishes, but it sees what they had led to before.
        var relatives = process.connections.values.filter(\.isRemembered)
        if relatives.isEmpty, !application.id.isEmpty {
            relatives = connections.values.filter {
                $0.isRemembered && $0.process.application == application.id && $0.user == application.user
            }
        }
        let states = Set(relatives.map(\.person))
        return states.count == 1 ? states.first ?? nil : nil
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

extension Agent {
    static let version: UInt32 = 1

    /// Every connection, in the order in which they came.
    func list() -> AgentInterface.List.Answer {
        let connections = directory.connections.values.sorted { $0.number < $1.number }
        return AgentInterface.List.Answer(connections: connections.map(entry))
    }

    private func entry(for connection: ManagedConnection) -> AgentInterface.ListEntry {
        var entry = AgentInterface.ListEntry()
        entry.name = connection.name
        entry.process = UInt32(connection.process.pid)
        entry.user = connection.user
        entry.program = connection.program
        entry.application = connection.process.application
        entry.state = connection.state.rawValue
        entry.isParked = connection.parking == .parked
        entry.names = UInt32(connection.subjects.names.count + connection.subjects.prefixes.count)
        entry.pending = UInt32(connection.pending.count)
        entry.dropped = connection.dropped
        entry.since = connection.since
        entry.decider = connection.decision.decider.name
        entry.hasFocus = hasFocus(connection.process)
        return entry
    }

    private func hasFocus(_ process: ManagedProcess) -> Bool {
        sources.focus(pid: process.pid, application: process.application, user: process.user)?.hasIt ?? false
    }

    func status() -> AgentInterface.StatusReport {
        let states = directory.connections.values.map(\.state)
        func count(_ state: LifecycleState) -> UInt32 { UInt32(states.lazy.filter { $0 == state }.count) }
        var report = AgentInterface.StatusReport()
        report.version = configuration.version
        report.process = UInt32(getpid())
        report.since = started
        report.observers = UInt32(states.count)
        report.processes = UInt32(directory.processes.count)
        report.foreground = count(.foreground)
        report.background = count(.background)
        report.suspended = count(.suspended)
        report.parked = parkedCount
        report.held = UInt32(holds.count)
        report.sources = sources.listed
        return report
    }

    private var parkedCount: UInt32 {
        UInt32(directory.connections.values.lazy.filter { $0.parking == .parked }.count)
    }

    // MARK: - Properties

    private func property(_ name: String) -> BusValue? {
        switch name {
        case "Version": .uint32(Agent.version)
        case "Observers": .uint32(UInt32(directory.connections.count))
        case "Parked": .uint32(parkedCount)
        default: nil
        }
    }

    func answerProperties(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        switch call.member {
        case "Get":
            try expect(call, "ss")
            try checkInterface(call)
            let name = call.arguments[1].string ?? ""
            guard let value = property(name) else { throw .unknownProperty(name) }
            link.reply(to: call, [.variant(value)])
        case "GetAll":
            try expect(call, "s")
            try checkInterface(call)
            let all = ["Version", "Observers", "Parked"].compactMap { name in property(name).map { (name, $0) } }
            link.reply(to: call, [.dictionary(all)])
        case "Set":
            call.arguments.closeDescriptors()
            guard call.arguments.map(\.signature) == ["s", "s", "v"] else {
                throw .invalidArguments("Set takes arguments of type 'ssv'.")
            }
            try checkInterface(call)
            let name = call.arguments[1].string ?? ""
            guard property(name) != nil else { throw .unknownProperty(name) }
            throw BusFault(
                name: "org.freedesktop.DBus.Error.PropertyReadOnly",
                message: "The property '\(name)' can only be read."
            )
        default:
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
    }

    private func checkInterface(_ call: BusCall) throws(BusFault) {
        let interface = call.arguments[0].string ?? ""
        guard interface == AgentInterface.name || interface.isEmpty else {
            throw BusFault(
                name: "org.freedesktop.DBus.Error.UnknownInterface",
                message: "There is no interface '\(interface)' at \(call.path)."
            )
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

extension Agent {
    static let version: UInt32 = 1

    /// Every connection, in the order in which they came.
    func list() -> BusValue {
        let connections = directory.connections.values.sorted { $0.number < $1.number }
        return .array(element: "a{sv}", connections.map(entry))
    }

    private func entry(for connection: ManagedConnection) -> BusValue {
        .dictionary([
            ("name", .string(connection.name)),
            ("pid", .uint32(UInt32(connection.process.pid))),
            ("uid", .uint32(connection.user)),
            ("program", .string(connection.program)),
            ("application", .string(connection.process.application)),
            ("state", .string(connection.state.rawValue)),
            ("parked", .boolean(connection.parking == .parked)),
            ("names", .uint32(UInt32(connection.subjects.names.count + connection.subjects.prefixes.count))),
            ("pending", .uint32(UInt32(connection.pending.count))),
            ("dropped", .uint64(connection.dropped)),
            ("since", .uint64(connection.since)),
            ("decider", .string(connection.decision.decider.name)),
            ("focused", .boolean(hasFocus(connection.process))),
        ])
    }

    private func hasFocus(_ process: ManagedProcess) -> Bool {
        sources.focus(pid: process.pid, application: process.application, user: process.user)?.hasIt ?? false
    }

    func status() -> BusValue {
        let states = directory.connections.values.map(\.state)
        func count(_ state: LifecycleState) -> BusValue { .uint32(UInt32(states.lazy.filter { $0 == state }.count)) }
        return .dictionary([
            ("version", .string(configuration.version)),
            ("pid", .uint32(UInt32(getpid()))),
            ("since", .uint64(started)),
            ("observers", .uint32(UInt32(states.count))),
            ("processes", .uint32(UInt32(directory.processes.count))),
            ("foreground", count(.foreground)),
            ("background", count(.background)),
            ("suspended", count(.suspended)),
            ("parked", .uint32(parkedCount)),
            ("held", .uint32(UInt32(holds.count))),
            ("sources", sources.listed),
        ])
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
        guard interface == Agent.interface || interface.isEmpty else {
            throw BusFault(
                name: "org.freedesktop.DBus.Error.UnknownInterface",
                message: "There is no interface '\(interface)' at \(call.path)."
            )
        }
    }
}

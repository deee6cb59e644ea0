// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TestSupport
import Testing

/// python3-dbusmock's logind, on a private bus that takes the system bus's place.
final class MockLogind: Sendable {
    static let isInstalled: Bool =
        (try? run(python, ["-c", "import dbusmock.templates.logind"]).status) == 0

    let bus: PrivateBus
    private let process: Mutex<RunningCommand>
    private let control: Mutex<RawBusClient>

    init() throws {
        bus = try PrivateBus(.daemon)
        control = Mutex(try RawBusClient(address: bus.address))
        process = Mutex(try MockLogind.start(bus))
        try waitForName()
    }

    private static func start(_ bus: PrivateBus) throws -> RunningCommand {
        try TestSupport.start(
            python,
            ["-m", "dbusmock", "--system", "--template", "logind"],
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address, "DISPLAY": nil],
            output: .null
        )
    }

    private func waitForName() throws {
        let isThere = try waitUntil(timeout: .patience) {
            try callBus("NameHasOwner", MockLogind.name).body.first == 1
        }
        try #require(isThere, "the mock did not take its name")
    }

    func kill() throws {
        try process.withLock { process in
            process.send(signal: SIGKILL)
            _ = try process.wait(timeout: .patience)
        }
    }

    /// After ``kill()``, or when the bus was restarted.
    func restart() throws {
        try control.withLock { $0 = try RawBusClient(address: bus.address) }
        try process.withLock { $0 = try MockLogind.start(bus) }
        try waitForName()
    }

    // MARK: - What it reports

    private static let name = "org.freedesktop.login1"
    private static let mock = "org.freedesktop.DBus.Mock"

    private func callBus(_ member: String, _ text: String) throws -> RawMessage {
        try control.withLock { try $0.callBus(member, signature: "s", body: RawBusClient.stringBody(text)) }
    }

    private func call(_ path: String, _ interface: String, _ member: String, _ signature: String, _ body: RawBody)
        throws
    {
        let reply = try control.withLock { control in
            try control.call(
                destination: MockLogind.name,
                path: "/org/freedesktop/login1" + path,
                interface: interface,
                member: member,
                signature: signature,
                body: body.bytes
            )
        }
        try #require(reply.kind == .reply, "\(reply.errorName ?? "") \(reply.string ?? "")")
    }

    /// The unique names on the bus.
    func connectionNames() throws -> Set<String> {
        try control.withLock { try $0.uniqueNames() }
    }

    func addSession(_ id: String, user: UInt32) throws {
        var body = RawBody()
        body.append(id)
        body.append("seat0")
        body.append(user)
        body.append("user\(user)")
        body.append(UInt32(1))
        try call("", MockLogind.mock, "AddSession", "ssusb", body)
        var arguments = RawBody()
        arguments.append(signature: "s")
        arguments.append(id)
        arguments.append(signature: "o")
        arguments.append("/org/freedesktop/login1/session/\(id)")
        try emit("SessionNew", "so", arguments)
    }

    /// Does what a screen locker does.
    func setLocked(_ id: String, _ isLocked: Bool) throws {
        var body = RawBody()
        body.append(UInt32(isLocked ? 1 : 0))
        try call("/session/\(id)", "org.freedesktop.login1.Session", "SetLockedHint", "b", body)
    }

    /// Requests that the session be locked.
    func requestLock(_ id: String) throws {
        try call("/session/\(id)", "org.freedesktop.login1.Session", "Lock", "", RawBody())
    }

    func setActive(_ id: String, _ isActive: Bool) throws { try set("Active", of: id, isActive) }

    private func set(_ property: String, of id: String, _ value: Bool) throws {
        var entries = RawBody()
        entries.align(to: 8)
        entries.append(property)
        entries.append(signature: "b")
        entries.append(UInt32(value ? 1 : 0))
        var body = RawBody()
        body.append("org.freedesktop.login1.Session")
        body.append(UInt32(entries.bytes.count))
        body.align(to: 8)
        body.append(bytes: entries.bytes)
        try call("/session/\(id)", MockLogind.mock, "UpdateProperties", "sa{sv}", body)
    }

    func setIdle(_ id: String, _ isIdle: Bool) throws { try set("IdleHint", of: id, isIdle) }

    /// The value of `InhibitDelayMaxSec=` in its configuration. Set it before the agent asks.
    func setLongestDelay(microseconds: UInt64) throws {
        var body = RawBody()
        body.append("org.freedesktop.login1.Manager")
        body.append("InhibitDelayMaxUSec")
        body.append(signature: "t")
        body.align(to: 8)
        body.append(bytes: withUnsafeBytes(of: microseconds.littleEndian) { Array($0) })
        try call("", MockLogind.mock, "AddProperty", "ssv", body)
    }

    func prepareForSleep(_ isAboutTo: Bool) throws { try prepare("PrepareForSleep", isAboutTo) }
    func prepareForShutdown(_ isAboutTo: Bool) throws { try prepare("PrepareForShutdown", isAboutTo) }

    private func prepare(_ signal: String, _ isAboutTo: Bool) throws {
        var arguments = RawBody()
        arguments.append(signature: "b")
        arguments.append(UInt32(isAboutTo ? 1 : 0))
        try emit(signal, "b", arguments)
    }

    /// Has a method run this in Python from now on.
    func replace(_ method: String, _ arguments: String, _ result: String, by code: String) throws {
        var body = RawBody()
        for text in ["org.freedesktop.login1.Manager", method, arguments, result, code] { body.append(text) }
        try call("", MockLogind.mock, "AddMethod", "sssss", body)
    }

    /// What its clients delay: "sleep", "shutdown".
    func delays() throws -> Set<String> {
        let reply = try control.withLock { control in
            try control.call(
                destination: MockLogind.name,
                path: "/org/freedesktop/login1",
                interface: "org.freedesktop.login1.Manager",
                member: "ListInhibitors"
            )
        }
        let text = String(decoding: reply.body, as: UTF8.self)
        return Set(["sleep", "shutdown"].filter { text.contains("\($0)\0") })
    }

    /// - Parameter arguments: variants, one after the other.
    private func emit(_ signal: String, _ signature: String, _ arguments: RawBody) throws {
        var body = RawBody()
        body.append("org.freedesktop.login1.Manager")
        body.append(signal)
        body.append(signature)
        body.append(UInt32(arguments.bytes.count))
        body.append(bytes: arguments.bytes)
        try call("", MockLogind.mock, "EmitSignal", "sssav", body)
    }
}

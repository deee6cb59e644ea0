// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TestSupport

/// Owns the agent's name, and says what a test wants it to say.
final class FakeAgent: Sendable {
    enum Answer {
        case reply([Wire])
        case error(String, String)
        case silence
        /// It dies before it answers.
        case death
    }

    static let name = "org.notifybus.Agent1"
    private static let path = "/org/notifybus/Agent1"

    /// The calls that have arrived, in order.
    let calls = Recorder<RawMessage>()
    private let client: Mutex<RawBusClient?>

    /// Returns when it owns the name.
    ///
    /// - Parameters:
    ///   - connection: the connection that it uses; nil for a new one.
    ///   - isReplaceable: whether another agent of this kind takes the name, and leaves it to this one when it dies.
    ///   - takesDescriptors: otherwise the bus refuses registrations in its place.
    init(
        on bus: PrivateBus,
        as connection: RawBusClient? = nil,
        owning name: String = FakeAgent.name,
        isReplaceable: Bool = false,
        takesDescriptors: Bool = false,
        answer: @escaping @Sendable (RawMessage) -> Answer = { _ in .silence }
    ) throws {
        let client = try connection ?? RawBusClient(address: bus.address, passesDescriptors: takesDescriptors)
        let reply = try client.callBus(
            "RequestName",
            signature: "su",
            // ALLOW_REPLACEMENT, REPLACE_EXISTING
            body: Wire.body([.string(name), .uint32(isReplaceable ? 3 : 0)])
        )
        guard reply.uint32 == 1 else { throw TestSupportError("the agent's name was not to be had") }
        self.client = Mutex(client)
        startThread { [weak self, calls] in
            // It ends with the bus at the latest.
            while let call = try? client.readMessage(timeout: .patience * 5) {
                guard call.kind == .call else { continue }
                if call.member == "Die" { break }
                calls.append(call)
                switch answer(call) {
                case .reply(let values): FakeAgent.reply(to: call, .reply, nil, values, by: client)
                case .error(let name, let text): FakeAgent.reply(to: call, .error, name, [.string(text)], by: client)
                case .silence: continue
                case .death:
                    self?.client.withLock { $0 = nil }
                    return
                }
            }
        }
    }

    /// An agent that always answers each method with the same values.
    convenience init(on bus: PrivateBus, replying values: [Wire]) throws {
        try self.init(on: bus) { _ in .reply(values) }
    }

    /// Disconnects from the bus, though perhaps not at once.
    func die() throws {
        let client = client.withLock { client in
            defer { client = nil }
            return client
        }
        guard let client else { return }
        var message = RawMessage(.call)
        message.flags = 1
        message.destination = client.uniqueName
        message.path = "/"
        message.member = "Die"
        try client.send(message)
    }

    /// Announces a change.
    func emit(_ values: [Wire], member: String = "StateChanged") throws {
        try client.withLock { try $0.map { try FakeAgent.emit(values, member: member, by: $0) } }
    }

    static func emit(
        _ values: [Wire],
        member: String = "StateChanged",
        by client: RawBusClient,
        to destination: String? = nil
    ) throws {
        try client.emitSignal(
            path: path,
            interface: name,
            member: member,
            destination: destination,
            signature: values.map(\.signature).joined(),
            body: Wire.body(values)
        )
    }

    private static func reply(
        to call: RawMessage,
        _ kind: RawMessage.Kind,
        _ errorName: String?,
        _ values: [Wire],
        by client: RawBusClient
    ) {
        var message = RawMessage(kind)
        message.flags = 1
        message.errorName = errorName
        message.replySerial = call.serial
        message.destination = call.sender
        message.signature = values.map(\.signature).joined()
        message.body = Wire.body(values)
        _ = try? client.send(message)
    }
}

/// The contents of a StateChanged.
func stateChange(_ name: String, _ pid: UInt32, _ application: String, _ from: String, _ to: String) -> [Wire] {
    [.string(name), .uint32(pid), .string(application), .string(from), .string(to)]
}

/// An entry of List.
struct FakeObserver {
    var name = ":1.5"
    var pid: UInt32 = 100
    var uid: UInt32 = 1000
    var program = "editor"
    var application = "org.example.Editor"
    var state = "foreground"
    var parked = false
    var names: UInt32 = 3
    var pending: UInt32 = 0
    var dropped: UInt64 = 0
    var since: UInt64 = 0
    var more: [(String, Wire)] = []

    var fields: [(String, Wire)] {
        [
            ("name", .string(name)), ("pid", .uint32(pid)), ("uid", .uint32(uid)), ("program", .string(program)),
            ("application", .string(application)), ("state", .string(state)), ("parked", .bool(parked)),
            ("names", .uint32(names)), ("pending", .uint32(pending)), ("dropped", .uint64(dropped)),
            ("since", .uint64(since)),
        ] + more
    }

    /// The answer to List.
    static func list(_ observers: [FakeObserver]) -> [Wire] {
        [.array(element: "a{sv}", observers.map { .dictionary($0.fields) })]
    }
}

extension PrivateBus {
    /// Runs `notify-lifecycle` on this bus until it exits.
    func lifecycle(_ arguments: String...) throws -> CommandResult {
        try TestSupport.run(productPath("notify-lifecycle"), ["--address", address] + arguments)
    }

    /// Starts `notify-lifecycle` on this bus.
    func startLifecycle(_ arguments: String...) throws -> RunningCommand {
        try start(productPath("notify-lifecycle"), ["--address", address] + arguments, input: .null)
    }

    /// Starts `notify-lifecycle watch` on this bus, and returns when it is live.
    func startWatching(_ arguments: String...) throws -> RunningCommand {
        let path = try productPath("notify-lifecycle")
        let watching = try start(path, ["--address", address, "watch", "-v"] + arguments, input: .null)
        try watching.waitForErrorOutput(containing: "notify-lifecycle: watching\n")
        return watching
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

/// A program that speaks to the relay by itself, and need not behave.
///
/// `@unchecked Sendable`: a test uses it on one thread at a time.
final class RelayClient: @unchecked Sendable {
    let bus: RawBusClient
    /// What it has heard, in order.
    private(set) var heard: [String] = []
    /// The states that it was put into.
    private(set) var states: [String] = []
    /// Whether it answers posts with errors, and how often it has.
    var refuses = false
    private(set) var refusals = 0
    /// What it answers to SetState.
    var dropped: UInt64 = 0

    init(_ bus: RawBusClient) { self.bus = bus }

    convenience init(address: String) throws { self.init(try RawBusClient(address: address)) }

    func call(_ member: String, _ signature: String, _ body: [UInt8], wantsReply: Bool = true) throws -> UInt32 {
        try bus.send(RelayClient.message(member, signature, body, wantsReply: wantsReply))
    }

    static func message(_ member: String, _ signature: String, _ body: [UInt8], wantsReply: Bool = true) -> RawMessage {
        var message = RawMessage(.call)
        message.flags = wantsReply ? 0 : 1
        message.destination = "org.notifybus.Relay1"
        message.path = "/org/notifybus/Relay1"
        message.interface = "org.notifybus.Relay1"
        message.member = member
        message.signature = signature
        message.body = body
        return message
    }

    func addNames(_ names: [String], prefixes: [String] = [], wantsReply: Bool = true) throws -> UInt32 {
        try call("AddNames", "asas", RelayClient.subjects(names, prefixes), wantsReply: wantsReply)
    }

    func synchronize(wantsReply: Bool = true) throws -> UInt32 {
        try call("Synchronize", "", [], wantsReply: wantsReply)
    }

    static func subjects(_ names: [String], _ prefixes: [String]) -> [UInt8] {
        var body = RawBody()
        body.append(names)
        body.append(prefixes)
        return body.bytes
    }

    /// Registers, and returns when it is heard for.
    func observe(_ names: [String], prefixes: [String] = []) throws {
        let registration = try call("Register", "a{sv}", [0, 0, 0, 0, 0, 0, 0, 0])
        try #require(try answer(to: registration).kind == .reply)
        try #require(try answer(to: addNames(names, prefixes: prefixes)).kind == .reply)
    }

    /// Answers what it is called, like any program, until the reply to its own call.
    func answer(to serial: UInt32) throws -> RawMessage {
        while true {
            let message = try bus.readMessage()
            if message.replySerial == serial { return message }
            try handle(message)
        }
    }

    /// Answers what it is called until a condition holds.
    func run(until isDone: (RelayClient) -> Bool) throws {
        while !isDone(self) { try handle(try bus.readMessage()) }
    }

    private func handle(_ message: RawMessage) throws {
        guard message.kind == .call else { return }
        var reply = RawMessage(.reply)
        reply.destination = message.sender
        reply.replySerial = message.serial
        switch message.member {
        case "DeliverPosts" where refuses:
            refusals += 1
            (reply.kind, reply.errorName) = (.error, "org.freedesktop.DBus.Error.Failed")
        case "DeliverPosts": heard += message.strings ?? []
        case "SetState":
            states.append(message.string ?? "")
            reply.signature = "t"
            reply.body = withUnsafeBytes(of: dropped.littleEndian) { Array($0) }
        default: return
        }
        try bus.send(reply)
    }
}

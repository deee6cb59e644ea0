// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// A D-Bus client on plain sockets, for tests that forge messages. It shares no code with what is tested, and sends
/// arbitrary messages.
///
/// Any thread may send. One thread at a time may read or call.
public final class RawBusClient: Sendable {
    /// The unique name of this connection.
    public var uniqueName: String { hello.withLock { $0 } }

    /// The connection's socket, which the client owns.
    public var socket: Int32 { stream.descriptor }

    private struct Incoming {
        var buffer: [UInt8] = []
        /// Messages that arrived while a call waited for its reply.
        var waiting: [RawMessage] = []
    }

    private let stream: UnixStream
    private let serials = Atomic<UInt32>(0)
    private let incoming = Mutex(Incoming())
    private let hello = Mutex("")

    /// Connects to a bus, authenticates as this process's user, and says hello.
    ///
    /// - Throws: ``TestSupportError`` if the bus does not take the connection in time.
    public convenience init(address: String, passesDescriptors: Bool = false) throws {
        let stream = try UnixStream(path: BusAddress.path(of: address))
        try self.init(stream, user: geteuid(), passesDescriptors: passesDescriptors)
    }

    /// Uses a connection that another process has made.
    ///
    /// - Parameters:
    ///   - user: that process's user when it connected.
    ///   - passesDescriptors: whether messages may carry descriptors.
    init(_ stream: UnixStream, user: UInt32, passesDescriptors: Bool = false) throws {
        let deadline = Deadline(after: .patience)
        self.stream = stream
        func say(_ text: String, expecting answer: String) throws {
            try stream.send(Array(text.utf8), deadline: deadline)
            var line: [UInt8] = []
            while line.last != UInt8(ascii: "\n") {
                let more = try stream.receive(deadline: deadline)
                guard !more.isEmpty else { throw TestSupportError("The bus hung up during authentication.") }
                line += more
            }
            guard line.starts(with: answer.utf8) else {
                throw TestSupportError("The bus refuses this user: \(String(decoding: line, as: UTF8.self))")
            }
        }
        try say("\0AUTH EXTERNAL \(hexadecimal(String(user).utf8))\r\n", expecting: "OK ")
        if passesDescriptors { try say("NEGOTIATE_UNIX_FD\r\n", expecting: "AGREE_UNIX_FD") }
        try stream.send(Array("BEGIN\r\n".utf8), deadline: deadline)
        let reply = try callBus("Hello")
        guard let name = reply.string, reply.kind == .reply else {
            throw TestSupportError("The bus refuses the connection: \(reply.errorName ?? "") \(reply.string ?? "")")
        }
        hello.withLock { $0 = name }
    }

    /// Sends bytes unchanged.
    public func send(_ bytes: [UInt8]) throws {
        try stream.send(bytes, deadline: Deadline(after: .patience))
    }

    /// Sends a message, under the next serial number unless it has one; returns the number.
    @discardableResult
    public func send(_ message: RawMessage) throws -> UInt32 {
        var message = message
        if message.serial == 0 { message.serial = serials.wrappingAdd(1, ordering: .relaxed).newValue }
        try send(message.bytes)
        return message.serial
    }

    /// Sends a message with descriptors, which the caller keeps; returns its number.
    @discardableResult
    public func send(_ message: RawMessage, with descriptors: [Int32]) throws -> UInt32 {
        var message = message
        message.descriptorCount = UInt32(descriptors.count)
        message.serial = serials.wrappingAdd(1, ordering: .relaxed).newValue
        try stream.send(message.bytes, with: descriptors)
        return message.serial
    }

    /// Sends a signal: a broadcast, or to one destination.
    public func emitSignal(
        path: String,
        interface: String,
        member: String,
        destination: String? = nil,
        signature: String = "",
        body: [UInt8] = []
    ) throws {
        var message = RawMessage(.signal)
        message.path = path
        message.interface = interface
        message.member = member
        message.destination = destination
        message.signature = signature
        message.body = body
        try send(message)
    }

    /// Calls a method and blocks until the reply, which may be an error.
    ///
    /// - Throws: ``TestSupportError`` if there is none in time.
    @discardableResult
    public func call(
        destination: String,
        path: String,
        interface: String,
        member: String,
        signature: String = "",
        body: [UInt8] = [],
        with descriptors: [Int32] = []
    ) throws -> RawMessage {
        var message = RawMessage(.call)
        message.destination = destination
        message.path = path
        message.interface = interface
        message.member = member
        message.signature = signature
        message.body = body
        let deadline = Deadline(after: .patience)
        return try incoming.withLock { incoming in
            let serial = try descriptors.isEmpty ? send(message) : send(message, with: descriptors)
            while true {
                let answer = try next(&incoming, deadline)
                if answer.replySerial == serial, answer.kind != .signal { return answer }
                incoming.waiting.append(answer)
            }
        }
    }

    /// Calls the bus itself.
    @discardableResult
    public func callBus(_ member: String, signature: String = "", body: [UInt8] = []) throws -> RawMessage {
        let name = "org.freedesktop.DBus"
        return try call(
            destination: name,
            path: "/org/freedesktop/DBus",
            interface: name,
            member: member,
            signature: signature,
            body: body
        )
    }

    /// The unique names of all connections on the bus.
    public func uniqueNames() throws -> Set<String> {
        guard let names = try callBus("ListNames").strings else { throw TestSupportError("The bus lists no names.") }
        return Set(names.filter { $0.hasPrefix(":") })
    }

    /// Adds a match rule to the bus.
    ///
    /// - Throws: ``TestSupportError`` if the bus refuses.
    public func addMatch(_ rule: String) throws {
        let reply = try callBus("AddMatch", signature: "s", body: RawBusClient.stringBody(rule))
        guard reply.kind == .reply else { throw TestSupportError("\(reply.errorName ?? "") \(reply.string ?? "")") }
    }

    /// Returns the next message, in the order of arrival.
    ///
    /// - Throws: ``TestSupportError`` if there is none within `timeout`, or the bus has hung up.
    public func readMessage(timeout: Duration = .patience) throws -> RawMessage {
        try incoming.withLock { incoming in
            if !incoming.waiting.isEmpty { return incoming.waiting.removeFirst() }
            return try next(&incoming, Deadline(after: timeout))
        }
    }

    /// Reads up to the answer to a call; returns what came before.
    public func answers(before serial: UInt32) throws -> [RawMessage] {
        var answers: [RawMessage] = []
        while case let answer = try readMessage(), answer.replySerial != serial { answers.append(answer) }
        return answers
    }

    /// A body of signature `s`.
    public static func stringBody(_ text: String) -> [UInt8] {
        var body = RawBody()
        body.append(text)
        return body.bytes
    }

    private func next(_ incoming: inout Incoming, _ deadline: Deadline) throws -> RawMessage {
        while true {
            if let message = try RawMessage.take(from: &incoming.buffer) { return message }
            let more = try stream.receive(deadline: deadline)
            guard !more.isEmpty else { throw TestSupportError("The bus has hung up.") }
            incoming.buffer += more
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

/// A message to be sent. See the D-Bus specification, "Message Format".
package struct OutgoingMessage {
    private enum Kind: UInt8 { case call = 1, reply, error, signal }

    private static let noReplyExpected: UInt8 = 1
    private static let noAutoStart: UInt8 = 2

    private let kind: Kind
    private let flags: UInt8
    private var destination: String?
    private var path: String?
    private var interface: String?
    private var member: String?
    private var replySerial: UInt32?
    private var errorName: String?
    private let arguments: [BusValue]

    private init(_ kind: Kind, flags: UInt8 = noReplyExpected, to destination: String?, _ arguments: [BusValue]) {
        (self.kind, self.flags, self.destination, self.arguments) = (kind, flags, destination, arguments)
    }

    /// A call of a method.
    ///
    /// - Parameters:
    ///   - activates: whether the bus may start a program for it.
    ///   - wantsReply: whether the answer is of interest.
    package static func call(
        _ destination: String,
        path: String,
        interface: String,
        member: String,
        _ arguments: [BusValue],
        activates: Bool = true,
        wantsReply: Bool = true
    ) -> OutgoingMessage {
        let flags = (activates ? 0 : noAutoStart) | (wantsReply ? 0 : noReplyExpected)
        var message = OutgoingMessage(.call, flags: flags, to: destination, arguments)
        (message.path, message.interface, message.member) = (path, interface, member)
        return message
    }

    /// A call of a method of the bus itself.
    package static func busCall(
        _ member: String,
        _ arguments: [BusValue] = [],
        of interface: String = BusMessage.busName,
        wantsReply: Bool = true
    ) -> OutgoingMessage {
        call(
            BusMessage.busName,
            path: "/org/freedesktop/DBus",
            interface: interface,
            member: member,
            arguments,
            wantsReply: wantsReply
        )
    }

    /// - Parameter destination: nil for everyone who asks for it.
    package static func signal(
        to destination: String? = nil,
        path: String,
        interface: String,
        member: String,
        _ arguments: [BusValue]
    ) -> OutgoingMessage {
        var message = OutgoingMessage(.signal, to: destination, arguments)
        (message.path, message.interface, message.member) = (path, interface, member)
        return message
    }

    package static func reply(to caller: String, _ serial: UInt32, _ arguments: [BusValue]) -> OutgoingMessage {
        var message = OutgoingMessage(.reply, to: caller, arguments)
        message.replySerial = serial
        return message
    }

    package static func error(to caller: String, _ serial: UInt32, name: String, _ text: String) -> OutgoingMessage {
        var message = OutgoingMessage(.error, to: caller, [.string(text)])
        (message.replySerial, message.errorName) = (serial, name)
        return message
    }

    /// The answer to a call of a method that does not exist, or to one that is too long; nil if no connection is named
    /// as the caller.
    package static func refusal(of call: BusMessage) -> OutgoingMessage? {
        guard let caller = call.sender.map({ String(cString: $0) }) else { return nil }
        guard call.kind == .longCall else {
            let text = "This connection does not accept method calls."
            return .error(to: caller, call.serial, name: "org.freedesktop.DBus.Error.UnknownMethod", text)
        }
        let text = "A call can't be longer than \(MessageReader.longestCall) bytes."
        return .error(to: caller, call.serial, name: "org.freedesktop.DBus.Error.LimitsExceeded", text)
    }

    // MARK: - Writing

    /// The descriptors that are sent along, in order.
    package var descriptors: [Int32] {
        var descriptors: [Int32] = []
        for argument in arguments { argument.collectDescriptors(into: &descriptors) }
        return descriptors
    }

    /// The message as it is written to the socket.
    ///
    /// - Returns: nil if it can't be a message: a text has a NUL in it, something is too long, or it names no connection,
    ///   object or error. The bus would disconnect the sender.
    package func bytes(serial: UInt32) -> [UInt8]? {
        guard destination.map(BusNames.isConnection) ?? true, path.map(BusNames.isObject) ?? true,
            errorName.map(BusNames.isError) ?? true
        else { return nil }
        var body = BusValueWriter()
        for argument in arguments { body.write(argument) }
        var writer = BusValueWriter()
        writer.byte(BusValueWriter.byteOrder)
        writer.byte(kind.rawValue)
        writer.byte(flags)
        writer.byte(1)  // the version of the protocol
        writer.integer(UInt32(truncatingIfNeeded: body.bytes.count))
        writer.integer(serial)
        writer.array(alignment: 8) { writer in
            for (code, text) in [(1, path), (2, interface), (3, member), (4, errorName), (6, destination)] {
                guard let text else { continue }
                writer.field(UInt8(code), type: code == 1 ? "o" : "s") { $0.text(text) }
            }
            if let replySerial { writer.field(5, type: "u") { $0.integer(replySerial) } }
            if !arguments.isEmpty {
                writer.field(8, type: "g") { $0.signature(arguments.signature) }
            }
            if body.descriptorCount > 0 { writer.field(9, type: "u") { $0.integer(body.descriptorCount) } }
        }
        writer.align(to: 8)
        guard writer.isValid, body.isValid, writer.bytes.count + body.bytes.count <= BusMessage.longestMessage else {
            return nil
        }
        return writer.bytes + body.bytes
    }
}

extension BusConnection {
    /// Sends a message.
    ///
    /// - Returns: its serial, which `nextSerial` was; 0 if it is not valid, or the bus has not read for too long.
    @discardableResult
    package func send(_ message: OutgoingMessage) -> UInt32 {
        let serial = nextSerial
        guard let bytes = message.bytes(serial: serial), write(bytes, message.descriptors) else { return 0 }
        return serial
    }
}

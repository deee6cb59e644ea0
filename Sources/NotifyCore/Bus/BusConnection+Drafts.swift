// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import Glibc

/// Serialization of messages, which libdbus does.
extension BusConnection {
    /// The kind of message to send.
    enum Draft {
        case call(destination: String, path: String, interface: String, member: String, activates: Bool)
        case oneWayCall(destination: String, path: String, interface: String, member: String)
        case signal(destination: String?, path: String, interface: String, member: String)
        case reply(destination: String, serial: UInt32)
        case error(destination: String, serial: UInt32, name: String)

        /// A call of a method of the bus itself.
        static func busCall(_ member: String, of interface: String = BusMessage.busName) -> Draft {
            .call(
                destination: BusMessage.busName,
                path: "/org/freedesktop/DBus",
                interface: interface,
                member: member,
                activates: true
            )
        }

        /// The same without a reply.
        static func oneWayBusCall(_ member: String) -> Draft {
            .oneWayCall(
                destination: BusMessage.busName,
                path: "/org/freedesktop/DBus",
                interface: BusMessage.busName,
                member: member
            )
        }
    }

    /// The reply to a call of a method that does not exist, or to one that is too long.
    private static func refusal(of call: BusMessage) -> Draft? {
        guard let caller = call.sender else { return nil }
        return .error(
            destination: String(cString: caller),
            serial: call.serial,
            name: "org.freedesktop.DBus.Error." + (call.kind == .longCall ? "LimitsExceeded" : "UnknownMethod")
        )
    }

    private static func refusalText(_ call: BusMessage) -> [BusValue] {
        let isTooLong = call.kind == .longCall
        return [
            .string(
                isTooLong
                    ? "A call can't be longer than \(MessageReader.longestCall) bytes."
                    : "This connection does not accept method calls."
            )
        ]
    }

    /// Replies to a call: there is no such method, or it is too long.
    func refuse(_ call: BusMessage) {
        guard waitingCount < BusConnection.answersLimit, let draft = BusConnection.refusal(of: call) else { return }
        _ = send(draft, BusConnection.refusalText(call))
    }

    /// While more bytes than this are queued, calls by strangers are left unanswered.
    private static let answersLimit = 1_048_576

    /// The same reply as bytes, for a connection whose posts are written in between.
    static func refusalBytes(of call: BusMessage, serial: UInt32) -> [UInt8] {
        guard let draft = refusal(of: call) else { return [] }
        return bytes(draft, refusalText(call), serial: serial)
    }

    /// The bytes of a signal for a name.
    static func signalBytes(for name: NotifyName, serial: UInt32) -> [UInt8] {
        let draft = Draft.signal(
            destination: nil,
            path: WireFormat.path(for: name),
            interface: WireFormat.interface(for: name),
            member: WireFormat.member
        )
        return bytes(draft, [.string(name.string)], serial: serial)
    }

    /// The bytes of a call to the bus.
    static func callBytes(
        _ member: String,
        _ argument: String? = nil,
        of interface: String = BusMessage.busName,
        serial: UInt32
    ) -> [UInt8] {
        bytes(.busCall(member, of: interface), argument.map { [.string($0)] } ?? [], serial: serial)
    }

    /// The bytes of a question to the agent that starts programs for names. If there is none, the bus replies with an
    /// error.
    static func launcherPingBytes(serial: UInt32) -> [UInt8] {
        let draft = Draft.call(
            destination: AgentInterface.launcherName,
            path: AgentInterface.path,
            interface: "org.freedesktop.DBus.Peer",
            member: "Ping",
            activates: false
        )
        return bytes(draft, [], serial: serial)
    }

    /// - Returns: nothing if the message is not valid.
    private static func bytes(_ draft: Draft, _ arguments: [BusValue], serial: UInt32) -> [UInt8] {
        withBytes(draft, arguments, serial: serial) { Array($0) } ?? []
    }

    /// Calls `body` with a message as it is to be written to the socket; descriptors are sent along.
    ///
    /// - Returns: nil if the message is not valid or memory is exhausted.
    static func withBytes<Result>(
        _ draft: Draft,
        _ arguments: [BusValue],
        serial: UInt32,
        _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result? {
        guard let message = begin(draft) else { return nil }
        var writer = nb_writer()
        nb_write_message(message, &writer)
        for argument in arguments where !BusConnection.write(argument, to: &writer) {
            nb_discard(message)
            return nil
        }
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = nb_draft_bytes(message, serial, &bytes)
        defer { nb_free(bytes) }
        guard let bytes, count > 0 else { return nil }
        return body(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    private static func begin(_ draft: Draft) -> OpaquePointer? {
        let message: OpaquePointer?
        switch draft {
        case .call(let destination, let path, let interface, let member, let activates):
            message = nb_draft_call(destination, path, interface, member)
            if let message, !activates { nb_draft_without_activation(message) }
        case .oneWayCall(let destination, let path, let interface, let member):
            message = nb_draft_call(destination, path, interface, member)
            if let message {
                nb_draft_without_activation(message)
                nb_draft_without_reply(message)
            }
        case .signal(let destination, let path, let interface, let member):
            message = nb_draft_signal(destination, path, interface, member)
        case .reply(let destination, let serial):
            message = nb_draft_reply(destination, serial)
        case .error(let destination, let serial, let name):
            message = nb_draft_error(destination, serial, name)
        }
        return message
    }

    private static func write(_ value: BusValue, to writer: inout nb_writer) -> Bool {
        switch value {
        case .number(let code, let number): nb_write_number(&writer, CChar(code), number)
        case .double(let number): nb_write_double(&writer, number)
        case .text(let code, let text): nb_write_string(&writer, CChar(code), text)
        case .descriptor(let descriptor): nb_write_descriptor(&writer, descriptor)
        case .array(let element, let values): write(values, as: "a", element, to: &writer)
        case .structure(let values): write(values, as: "r", nil, to: &writer)
        case .entry(let key, let value): write([key, value], as: "e", nil, to: &writer)
        case .variant(let value): write([value], as: "v", value.signature, to: &writer)
        }
    }

    private static func write(
        _ values: [BusValue],
        as type: Unicode.Scalar,
        _ signature: String?,
        to writer: inout nb_writer
    ) -> Bool {
        var inner = nb_writer()
        guard nb_write_enter(&writer, CChar(type.value), signature, &inner) else { return false }
        for value in values where !write(value, to: &inner) {
            _ = nb_write_leave(&writer, &inner)
            return false
        }
        return nb_write_leave(&writer, &inner)
    }
}

// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import CLinux
import Glibc

/// A message that has arrived. Its pointers are valid until the next call on the connection that gave it.
struct BusMessage {
    enum Kind {
        case signal, reply, error, call, disconnected
        /// Something that nobody can use: too long, or not valid.
        case useless
    }

    var kind: Kind
    var replySerial: UInt32 = 0
    var serial: UInt32 = 0
    var number: UInt32 = 0
    var wantsReply = false
    var path: UnsafePointer<CChar>?
    var interface: UnsafePointer<CChar>?
    var member: UnsafePointer<CChar>?
    var sender: UnsafePointer<CChar>?
    var errorName: UnsafePointer<CChar>?
    /// The only argument, if it is a string.
    var text: UnsafeRawBufferPointer?
}

/// A private connection to a bus. The only Swift file that knows the C shim.
///
/// It is used by one thread at a time; its owner sees to that.
final class BusConnection {
    let raw: OpaquePointer
    /// The serial whose reply says that the bus has taken us in.
    let helloSerial: UInt32
    /// The socket; it stays open until the connection is released.
    let descriptor: Int32
    private let takesDescriptors: Bool
    /// What the bus says, once libdbus has handed the socket over.
    private var input = MessageInput()
    private var isHandedOver = false

    /// Connects and says Hello; the answer to it comes as a reply to `helloSerial`.
    ///
    /// - Parameter takesDescriptors: whether messages may bring descriptors along. Then libdbus does all the reading,
    ///   and every message costs what libdbus costs.
    init(address: String, title: String, takesDescriptors: Bool = false) throws(NotifyBusError) {
        var error = nb_error()
        guard let raw = nb_open(address, &error) else {
            let reason = BusConnection.string(&error.message)
            let name = BusConnection.string(&error.name)
            // Of this program's own means, there may be a bus all the same.
            let isOurs = ["org.freedesktop.DBus.Error.LimitsExceeded", "org.freedesktop.DBus.Error.NoMemory"]
                .contains(name)
            throw NotifyBusError(
                isOurs ? .failed : .noBus,
                "\(BusConnection.capitalized(title)) cannot be reached: \(reason).",
                busErrorName: name
            )
        }
        self.raw = raw
        helloSerial = nb_hello_serial(raw)
        descriptor = nb_fd(raw)
        // A child would share the socket: its messages would get in between, and the bus would wait for both to close.
        if descriptor >= 0 { _ = linux_close_in_child(descriptor, true) }
        self.takesDescriptors = takesDescriptors
    }

    deinit {
        if descriptor >= 0 { linux_keep_in_child(descriptor) }
        nb_close(raw)
    }

    /// What to poll(2) the socket for.
    var events: Int16 { nb_events(raw) }

    /// Reads and writes what the socket takes now, without waiting.
    func service(_ events: Int16) {
        nb_service(raw, events)
        if isHandedOver {
            if events & ~Int16(POLLOUT) != 0 { input.fill(from: descriptor) }
        } else if !takesDescriptors {
            isHandedOver = nb_hand_over(raw)
        }
    }

    /// Takes the next message that has arrived.
    func next() -> BusMessage? {
        if isHandedOver { return nextRead() }
        var message = nb_message()
        return BusConnection.message(nb_next(raw, &message), message)
    }

    private func nextRead() -> BusMessage? {
        switch input.next() {
        case .message(let bytes):
            // Not every bus checks what it passes on, so this may be no valid message.
            return BusMessage.post(in: bytes) ?? take(bytes) ?? BusMessage(kind: .useless)
        case .passedOver:
            return BusMessage(kind: .useless)
        case .nothing:
            return input.hasEnded ? BusMessage(kind: .disconnected) : nil
        case .broken:
            return BusMessage(kind: .disconnected)
        }
    }

    /// Has libdbus read a message.
    ///
    /// - Returns: nil if it is not valid.
    func take(_ bytes: UnsafeRawBufferPointer) -> BusMessage? {
        guard let start = bytes.baseAddress else { return nil }
        var message = nb_message()
        return BusConnection.message(nb_take(raw, start, bytes.count, &message), message)
    }

    private static func message(_ kind: nb_kind, _ message: nb_message) -> BusMessage? {
        let found: BusMessage.Kind
        switch kind {
        case NB_NOTHING: return nil
        case NB_SIGNAL: found = .signal
        case NB_REPLY: found = .reply
        case NB_ERROR: found = .error
        case NB_CALL: found = .call
        default: found = .disconnected
        }
        return BusMessage(
            kind: found,
            replySerial: message.reply_serial,
            serial: message.serial,
            number: message.number,
            wantsReply: message.wants_reply,
            path: message.path,
            interface: message.interface,
            member: message.member,
            sender: message.sender,
            errorName: message.error_name,
            text: message.string.map { UnsafeRawBufferPointer(start: $0, count: message.string_length) }
        )
    }

    /// Calls a method of the bus, without waiting for the answer.
    ///
    /// - Returns: the serial that the answer will name; 0 when memory ran out.
    func callBus(_ member: String, _ argument: String? = nil) -> UInt32 {
        nb_call_bus(raw, member, argument)
    }

    /// Answers the call that `next` gave last: there is no such method.
    func refuseCall() {
        nb_refuse(raw)
    }

    /// The same answer as bytes, for a connection whose socket we write ourselves.
    func refusalBytes(serial: UInt32) -> [UInt8] {
        BusConnection.bytes { nb_make_refusal(raw, serial, &$0) }
    }

    /// The bytes of a signal that says a name.
    static func signalBytes(for name: NotifyName, serial: UInt32) -> [UInt8] {
        bytes {
            nb_make_signal(
                WireFormat.path(for: name),
                WireFormat.interface(for: name),
                WireFormat.member,
                name.string,
                serial,
                &$0
            )
        }
    }

    /// The bytes of a call of the bus.
    static func callBytes(_ member: String, _ argument: String? = nil, serial: UInt32) -> [UInt8] {
        bytes { nb_make_bus_call(member, argument, serial, &$0) }
    }

    static func refusedEntry(_ title: String) -> NotifyBusError {
        NotifyBusError(
            .noBus,
            "\(capitalized(title)) closed the connection instead of letting this program in; "
                + "it may belong to another user."
        )
    }

    static func lossError(_ title: String) -> NotifyBusError {
        NotifyBusError(.disconnected, "\(capitalized(title)) has closed the connection.")
    }

    private static func bytes(_ make: (inout UnsafeMutablePointer<UInt8>?) -> Int) -> [UInt8] {
        var pointer: UnsafeMutablePointer<UInt8>?
        let count = make(&pointer)
        defer { nb_free(pointer) }
        guard let pointer else { return [] }
        return Array(UnsafeBufferPointer(start: pointer, count: count))
    }

    /// The text in an array of C, which Swift sees as a tuple.
    private static func string<Characters>(_ characters: inout Characters) -> String {
        withUnsafePointer(to: &characters) {
            $0.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
        }
    }

    private static func capitalized(_ title: String) -> String {
        title.prefix(1).uppercased() + title.dropFirst()
    }
}

// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import Glibc
package import NotifyNames

/// A private connection to a bus: messages in, messages out.
///
/// It is used by one thread at a time, which its owner ensures.
package final class BusConnection {
    /// The serial whose reply means that the bus has accepted the connection.
    package let helloSerial: UInt32 = 1
    private let socket: BusSocket
    private let reader: MessageReader
    /// The message that `next` last returned, unless it looked like a post: nobody asks for their arguments.
    private var current = BusMessage(kind: .invalid)
    private var lastSerial: UInt32 = 0
    private var isBroken = false

    /// Connects and calls Hello; the reply has `helloSerial`.
    ///
    /// - Parameter takesDescriptors: whether messages may carry descriptors. If not, the kernel drops them.
    package init(address: String, title: String, takesDescriptors: Bool = false) throws(NotifyBusError) {
        socket = try BusSocket(address: address, title: title)
        reader = MessageReader(takesDescriptors: takesDescriptors)
        // Waits, like whatever is sent after it, until the bus has accepted the connection.
        _ = callBus("Hello")
    }

    /// The socket. It changes once the bus has accepted the connection, and then stays open until the connection is
    /// released.
    package var descriptor: Int32 { socket.descriptor }

    /// The events for which to poll(2) the socket.
    package var events: Int16 { socket.events }

    /// The GUID of the bus, which changes when the bus is restarted. See the D-Bus specification, "UUIDs".
    package var busGUID: String { socket.busGUID }

    /// Reads and writes what the socket accepts now, without waiting.
    package func service(_ events: Int16) {
        guard socket.isOpen else { return socket.enter(events) }
        if events & Int16(POLLOUT) != 0 { socket.flush() }
        // Even after a hang-up, what the bus had sent before is still there, and is read to its end.
        if events & ~Int16(POLLOUT) != 0 { socket.fill(reader) }
    }

    /// The bytes of the next message, if complete, for a caller that can interpret them and then calls `passOver`. They
    /// are valid until then.
    package func peek() -> UnsafeRawBufferPointer? {
        isBroken ? nil : reader.peek()
    }

    /// Skips the message that `peek` returned.
    package func passOver(_ message: UnsafeRawBufferPointer) {
        reader.passOver(message)
    }

    /// Takes the next message that has arrived. Its pointers are valid until the next call.
    package func next() -> BusMessage? {
        if isBroken { return BusMessage(kind: .disconnected) }
        switch reader.next() {
        case .message(let message):
            if message.looksLikePost || message.kind == .longCall { return message }
            guard message.isFrom(BusMessage.busName) || isValid(message) else { return BusMessage(kind: .invalid) }
            current = message
            return message
        case .passedOver:
            return BusMessage(kind: .invalid)
        case .nothing:
            return socket.hasEnded ? BusMessage(kind: .disconnected) : nil
        case .broken:
            isBroken = true
            return BusMessage(kind: .disconnected)
        }
    }

    /// Asks libdbus, which validates messages more thoroughly than the reader: not every bus checks what it passes on.
    /// What the bus says itself needs none: the first messages would take a seventh of the instructions of a short program.
    /// Code that handles a post compares it with the expected bytes instead.
    private func isValid(_ message: BusMessage) -> Bool {
        guard let start = message.bytes.baseAddress else { return false }
        guard message.descriptorCount > 0 else { return nb_is_message(start, message.bytes.count) }
        // libdbus would look for the descriptors.
        var bytes = Array(message.bytes)
        let place = message.descriptorCountOffset
        bytes.replaceSubrange(place..<place + 4, with: repeatElement(0, count: 4))
        return nb_is_message(bytes, bytes.count)
    }

    /// The arguments of the message that `next` last returned, which may be requested once.
    ///
    /// - Returns: nil if they are nested too deeply or are too many. Descriptors among them belong to the caller.
    package func arguments() -> [BusValue]? {
        var values = BusValueReader(current.bodyReader)
        var descriptors = reader.takeDescriptors()
        return values.values(current.signature, &descriptors)
    }

    // MARK: - Writing

    private func nextSerial() -> UInt32 {
        // Zero is not a valid serial.
        lastSerial = lastSerial == .max ? 1 : lastSerial + 1
        return lastSerial
    }

    /// Calls a method of the bus, without waiting for the reply.
    ///
    /// - Returns: the serial of the reply; 0 if it can't be sent.
    package func callBus(_ member: String, _ argument: String? = nil) -> UInt32 {
        send(.busCall(member, argument.map { [.string($0)] } ?? []))
    }

    /// Calls a method of the bus that replies nothing, or nothing of interest.
    package func tellBus(_ member: String, _ argument: String) {
        _ = send(.busCall(member, [.string(argument)], wantsReply: false))
    }

    /// Sends a message.
    ///
    /// - Returns: its serial; 0 if it is not valid, or the bus has not read for too long.
    package func send(_ message: OutgoingMessage) -> UInt32 {
        let serial = nextSerial()
        guard let bytes = message.bytes(serial: serial) else { return 0 }
        return bytes.withUnsafeBytes { socket.write($0, message.descriptors) } ? serial : 0
    }

    /// While more bytes than this are queued, calls by strangers are left unanswered.
    private static let answersLimit = 1_048_576

    /// Replies to a call: there is no such method, or it is too long.
    package func refuse(_ call: BusMessage) {
        guard waitingCount < BusConnection.answersLimit, let refusal = OutgoingMessage.refusal(of: call) else { return }
        _ = send(refusal)
    }

    package func refuseIfAsked(_ call: BusMessage) { if call.wantsReply { refuse(call) } }

    /// Whether messages are held back to be written together.
    package var gathers: Bool {
        get { socket.gathers }
        set { socket.gathers = newValue }
    }

    /// How many bytes are queued.
    package var waitingCount: Int { socket.waitingCount }

    /// How many bytes have been sent or queued so far.
    package var sentCount: UInt64 { socket.sentCount }

    /// Since when the bus has accepted nothing of what is queued; nil if nothing is.
    package var stalledSince: MonotonicTime? { socket.stalledSince }
}

// MARK: - Errors

extension BusConnection {
    package static func refusedEntry(_ title: String) -> NotifyBusError {
        NotifyBusError(
            .noBus,
            "\(capitalized(title)) closed the connection instead of accepting it; "
                + "it may belong to another user."
        )
    }

    package static func lossError(_ title: String) -> NotifyBusError {
        NotifyBusError(.disconnected, "\(capitalized(title)) closed the connection.")
    }
}

// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import Glibc

/// A private connection to a bus: messages in, messages out.
///
/// It is used by one thread at a time; its owner sees to that.
final class BusConnection {
    /// The serial whose reply says that the bus has taken us in.
    let helloSerial: UInt32 = 1
    private let socket: BusSocket
    private let reader: MessageReader
    /// What `next` gave last, unless it looked like a post: nobody asks for the arguments of those.
    private var current = BusMessage(kind: .useless)
    private var lastSerial: UInt32 = 0
    private var isBroken = false

    /// Connects and says Hello; the answer to it comes as a reply to `helloSerial`.
    ///
    /// - Parameter takesDescriptors: whether messages may bring descriptors along. If not, the kernel drops them.
    init(address: String, title: String, takesDescriptors: Bool = false) throws(NotifyBusError) {
        socket = try BusSocket(address: address, title: title)
        reader = MessageReader(takesDescriptors: takesDescriptors)
        // Waits, and whatever is sent after it, until the bus has let us in.
        _ = callBus("Hello")
    }

    /// The socket. It is another one when the bus has let us in, and then stays open until the connection is released.
    var descriptor: Int32 { socket.descriptor }

    /// What to poll(2) the socket for.
    var events: Int16 { socket.events }

    /// What the bus says it is. A bus that was started again says something else. See the D-Bus specification, "UUIDs".
    var busGUID: String { socket.busGUID }

    /// Reads and writes what the socket takes now, without waiting.
    func service(_ events: Int16) {
        guard socket.isOpen else { return socket.enter(events) }
        if events & Int16(POLLOUT) != 0 { socket.flush() }
        // After a hang-up too: what the bus had sent before is still there, and is read to its end.
        if events & ~Int16(POLLOUT) != 0 { socket.fill(reader) }
    }

    /// The bytes of the next message, if they are all there: for somebody who knows what they mean, and then calls
    /// `passOver`. They are valid until then.
    func peek() -> UnsafeRawBufferPointer? {
        isBroken ? nil : reader.peek()
    }

    /// Goes on behind the message that `peek` gave.
    func passOver(_ message: UnsafeRawBufferPointer) {
        reader.passOver(message)
    }

    /// Takes the next message that has arrived. Its pointers are valid until the next call.
    func next() -> BusMessage? {
        if isBroken { return BusMessage(kind: .disconnected) }
        switch reader.next() {
        case .message(let message):
            if message.looksLikePost { return message }
            guard isValid(message) else { return BusMessage(kind: .useless) }
            current = message
            return message
        case .passedOver:
            return BusMessage(kind: .useless)
        case .nothing:
            return socket.hasEnded ? BusMessage(kind: .disconnected) : nil
        case .broken:
            isBroken = true
            return BusMessage(kind: .disconnected)
        }
    }

    /// Asks libdbus, which knows better than the reader what may stand in a message: not every bus checks what it passes
    /// on. Whoever looks at a post compares it with what he expects, byte for byte.
    private func isValid(_ message: BusMessage) -> Bool {
        guard let start = message.bytes.baseAddress else { return false }
        guard message.descriptorCount > 0 else { return nb_is_message(start, message.bytes.count) }
        // libdbus would look for the descriptors.
        var bytes = Array(message.bytes)
        let place = message.descriptorCountOffset
        bytes.replaceSubrange(place..<place + 4, with: repeatElement(0, count: 4))
        return nb_is_message(bytes, bytes.count)
    }

    /// The arguments of the message that `next` gave last, to be asked for once.
    ///
    /// - Returns: nil if they are nested too deep or too many. Descriptors among them belong to the caller.
    func arguments() -> [BusValue]? {
        var values = BusValueReader(current.bodyReader)
        var descriptors = reader.takeDescriptors()
        return values.values(current.signature, &descriptors)
    }

    // MARK: - Writing

    func nextSerial() -> UInt32 {
        // Zero is not a serial.
        lastSerial = lastSerial == .max ? 1 : lastSerial + 1
        return lastSerial
    }

    /// Calls a method of the bus, without waiting for the answer.
    ///
    /// - Returns: the serial that the answer will name; 0 when it can't be sent.
    func callBus(_ member: String, _ argument: String? = nil) -> UInt32 {
        let arguments = argument.map { [BusValue.string($0)] } ?? []
        return send(.busCall(member), arguments)
    }

    /// Sends a message.
    ///
    /// - Returns: its serial; 0 when it is not valid, memory ran out, or the bus has not read for too long.
    func send(_ draft: Draft, _ arguments: [BusValue]) -> UInt32 {
        let serial = nextSerial()
        var descriptors: [Int32] = []
        for argument in arguments { argument.collectDescriptors(into: &descriptors) }
        let isSent = BusConnection.withBytes(draft, arguments, serial: serial) { socket.write($0, descriptors) }
        return isSent == true ? serial : 0
    }

    /// Whether messages wait to be written together.
    var gathers: Bool {
        get { socket.gathers }
        set { socket.gathers = newValue }
    }

    /// How many bytes wait to be written.
    var waitingCount: Int { socket.waitingCount }
}

// MARK: - Errors

extension BusConnection {
    static func refusedEntry(_ title: String) -> NotifyBusError {
        NotifyBusError(
            .noBus,
            "\(capitalized(title)) closed the connection instead of accepting it; "
                + "it may belong to another user."
        )
    }

    static func lossError(_ title: String) -> NotifyBusError {
        NotifyBusError(.disconnected, "\(capitalized(title)) closed the connection.")
    }
}

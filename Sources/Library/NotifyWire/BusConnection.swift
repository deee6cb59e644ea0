// SPDX-License-Identifier: Apache-2.0

import CForkGuard
import CLinux
import Glibc
package import NotifyNames

/// A private connection to a bus: messages in, messages out.
///
/// A ``Handshake`` opens it. Messages sent earlier wait until the bus has authenticated it.
///
/// What is read or counted for each post is a private variable, here and in what this is made of: the compiler omits the
/// run-time check for exclusive access only if no other module can reach the variable itself.
///
/// It is used by one thread at a time, which its owner ensures.
package final class BusConnection {
    /// How much may be queued for writing, in bytes. A bus that is reading accepts much more than this in a second.
    private static let queueLimit = 268_435_456

    /// The socket, which the program may have closed; nil until the bus has authenticated it.
    private var own: OwnDescriptor?
    /// Has the socket closed in the child of fork(2), which would share it: its messages would get in between, and the
    /// bus would wait for both to close it.
    private var mark: OpaquePointer?
    private let output = BusOutput()
    private let reader: MessageReader
    /// What poll(2) has reported, until `service` sees to it.
    private var reported: Int16 = 0
    /// The serial of the next message to be sent.
    package private(set) var nextSerial: UInt32 = 1
    /// Whether the bus has closed the connection, and everything it had sent before has been read.
    private var hasEnded = false
    private var isBroken = false
    /// The GUID of the bus: another one at the same address, or the same one restarted, has another GUID. See the D-Bus
    /// specification, "UUIDs".
    package private(set) var busGUID = ""
    /// Whether the bus knows this process by the user that it is here. If not, they are in different user namespaces, and
    /// only the bus can say which user this is there.
    package private(set) var hasConfirmedUser = true

    /// - Parameter takesDescriptors: whether messages may carry descriptors. If not, the kernel drops them.
    init(takesDescriptors: Bool) {
        reader = MessageReader(takesDescriptors: takesDescriptors)
    }

    /// Takes the socket, once the bus has authenticated it, and writes what is queued. Forks wait meanwhile.
    func begin(_ socket: Int32, busGUID: String, hasConfirmedUser: Bool) {
        (self.busGUID, self.hasConfirmedUser) = (busGUID, hasConfirmedUser)
        own = OwnDescriptor(socket)
        mark = fork_close_in_child(socket, true)
        output.flush(to: socket)
    }

    deinit {
        fork_delay()
        defer { fork_allow() }
        fork_keep_in_child(mark)
        guard isOurs else { return }
        if isLeft {
            close(descriptor)
            return
        }
        // The lifecycle agent may hold a duplicate of the socket, so close(2) alone would not end the connection.
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    /// The socket, which stays open until the connection is released; -1 until the bus has authenticated it.
    package var descriptor: Int32 { own?.number ?? -1 }

    /// Whether the socket is still ours. If not, the connection has ended.
    package var isOurs: Bool { own?.isOurs == true }

    /// The events for which to poll(2) the socket.
    package var events: Int16 { output.isEmpty ? Int16(POLLIN) : Int16(POLLIN) | Int16(POLLOUT) }

    /// Takes what poll(2) has reported for the socket: the next `peek` or `next` first reads and writes accordingly.
    package func report(_ events: Int16) { reported = events }

    /// Reads and writes what the socket accepts now, without waiting.
    private func service() {
        let events = reported
        reported = 0
        if isLeft { return }
        guard isOurs else {
            hasEnded = true
            return
        }
        if events & Int16(POLLOUT) != 0 { output.flush(to: descriptor) }
        // Even after a hang-up, the data that the bus had sent before is still there, and is read to its end.
        guard events & ~Int16(POLLOUT) != 0, let count = reader.fill(from: descriptor) else { return }
        if count == 0 { hasEnded = true }
        received &+= UInt64(count)
    }

    /// Whether another process goes on reading with a duplicate of the socket.
    private var isLeft = false

    /// Reads nothing any more, and ends without ending the connection on the bus: another process goes on reading with
    /// a duplicate of the socket.
    ///
    /// - Returns: what has been read and not taken.
    package func leave() -> [UInt8] {
        isLeft = true
        return reader.rest
    }

    /// Writes what is queued, and waits until it is written.
    ///
    /// - Returns: whether it was, in time.
    package func flush(until limit: MonotonicTime) -> Bool {
        guard descriptor >= 0 else { return false }
        while true {
            output.flush(to: descriptor)
            if output.isEmpty { return true }
            var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            let time = limit.millisecondsFromNow
            guard time > 0, poll(&request, 1, time) >= 0 || errno == EINTR else { return false }
        }
    }

    /// The bytes of the next message, if complete, for a caller that can interpret them and then calls `passOver`. They
    /// are valid until then.
    package func peek() -> UnsafeRawBufferPointer? {
        if reported != 0 { service() }
        return isBroken || isLeft ? nil : reader.peek()
    }

    /// Skips the message that `peek` returned.
    package func passOver(_ message: UnsafeRawBufferPointer) {
        reader.passOver(message)
    }

    /// Takes the next message that has arrived. Its pointers are valid until the next call.
    package func next() -> BusMessage? {
        if isLeft { return nil }
        if reported != 0 { service() }
        if isBroken { return BusMessage(kind: .disconnected) }
        switch reader.next() {
        case .message(let message):
            // A post is compared with the expected bytes instead, and a call validated when its arguments are read.
            if message.looksLikePost || message.kind == .call || message.kind == .longCall { return message }
            // Messages from the bus itself need no validation: validating the first ones would take a seventh of the
            // instructions of a short program.
            guard message.isFrom(BusMessage.busName) || message.isValid else { return BusMessage(kind: .invalid) }
            return message
        case .passedOver:
            return BusMessage(kind: .invalid)
        case .nothing:
            return hasEnded ? BusMessage(kind: .disconnected) : nil
        case .broken:
            isBroken = true
            return BusMessage(kind: .disconnected)
        }
    }

    // MARK: - Writing

    /// Writes a message whose serial is `nextSerial`, as far as the socket accepts it now, and queues the rest.
    ///
    /// - Returns: false if the bus has not read for too long, or the descriptors can't be sent.
    func write(_ bytes: [UInt8], _ descriptors: [Int32]) -> Bool {
        guard bytes.count <= BusConnection.queueLimit - output.count else { return false }
        // Zero is not a valid serial.
        nextSerial = nextSerial == .max ? 1 : nextSerial + 1
        sentCount &+= UInt64(bytes.count)
        let open = !gathers && !collects && isOurs ? descriptor : nil
        return bytes.withUnsafeBytes { output.write($0, descriptors, to: open) }
    }

    /// While more bytes than this are queued, calls by strangers are left unanswered.
    private static let answersLimit = 1_048_576
    package var mayAnswerStrangers: Bool { waitingCount < BusConnection.answersLimit }

    /// Replies to a call: there is no such method, or it is too long.
    package func refuse(_ call: BusMessage) {
        guard mayAnswerStrangers, let refusal = OutgoingMessage.refusal(of: call) else { return }
        send(refusal)
    }

    /// Whether messages are held back to be written together: the bus then receives them without others in between.
    package var gathers = false { didSet { if !collects { writeQueued() } } }

    /// Whether messages are held back for a moment, which saves the system calls.
    package var collects = false { didSet { if !collects { writeQueued() } } }

    /// Writes what is held back, unless that is still being gathered.
    package func writeQueued() {
        if !gathers, isOurs { output.flush(to: descriptor) }
    }

    /// How many bytes are queued.
    package var waitingCount: Int { output.count }

    /// How many bytes have been read so far.
    package var readCount: UInt64 { received }
    private var received: UInt64 = 0

    /// Asked about a call of which only the header has come, and that is long; if it is refused, it is not kept.
    package var refusesCall: ((BusMessage) -> Bool)? {
        get { reader.refusesCall }
        set { reader.refusesCall = newValue }
    }

    /// How many bytes have been sent or queued so far.
    package private(set) var sentCount: UInt64 = 0

    /// Since when the bus has accepted nothing of what is queued; nil if nothing is.
    package var stalledSince: MonotonicTime? { output.stalledSince }
}

extension BusConnection {
    package static func lossError(_ title: String) -> NotifyBusError {
        NotifyBusError(.disconnected, "\(capitalized(title)) closed the connection.")
    }
}

/// Messages being written to a socket that accepts as many bytes as it has room for.
///
/// Descriptors travel with the first byte of their message, so a message with descriptors starts a new piece.
package final class BusOutput {
    private struct Piece {
        var bytes: [UInt8]
        /// Duplicates of the descriptors to send along.
        var descriptors: [Int32]
    }

    private static let pieceSize = 65_536

    private var pieces: [Piece] = []
    /// How much of the first piece has been written.
    private var head = 0
    private var waiting = 0
    /// Since when the socket has accepted nothing; nil if nothing is queued.
    private(set) var stalledSince: MonotonicTime?
    /// Whether the other side has stopped reading. Its remaining messages are still read.
    package private(set) var isBroken = false

    package init() {}

    deinit {
        for piece in pieces { piece.descriptors.forEach { Glibc.close($0) } }
    }

    /// How many bytes are queued.
    package var count: Int { waiting }
    package var isEmpty: Bool { waiting == 0 }
    /// How many bytes are in memory.
    package var size: Int { pieces.reduce(0) { $0 + $1.bytes.count } }

    /// - Parameter socket: nil if there is none yet.
    /// - Returns: false if the descriptors can't be sent; then no part of the message has been.
    package func write(_ bytes: UnsafeRawBufferPointer, _ descriptors: [Int32], to socket: Int32?) -> Bool {
        var written = 0
        if isEmpty, !isBroken, let socket {
            guard let sent = BusOutput.send(bytes, descriptors, to: socket) else {
                isBroken = descriptors.isEmpty
                return isBroken
            }
            written = sent
        }
        guard written < bytes.count, !isBroken else { return true }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
        if descriptors.isEmpty || written > 0 {
            append(rest)
        } else {
            let duplicates = descriptors.map { fcntl($0, F_DUPFD_CLOEXEC, 0) }
            guard !duplicates.contains(-1) else {
                duplicates.forEach { if $0 >= 0 { Glibc.close($0) } }
                return false
            }
            if isEmpty { stalledSince = .now }
            pieces.append(Piece(bytes: Array(rest), descriptors: duplicates))
            waiting += rest.count
        }
        return true
    }

    /// Queues bytes, to be written by `flush`.
    package func append(_ bytes: UnsafeRawBufferPointer) {
        if isEmpty { stalledSince = .now }
        // The sent part of a piece is freed along with it, so a piece must not grow for ever.
        if pieces.last.map({ $0.descriptors.isEmpty && $0.bytes.count < BusOutput.pieceSize }) == true {
            pieces[pieces.count - 1].bytes.append(contentsOf: bytes)
        } else {
            pieces.append(Piece(bytes: Array(bytes), descriptors: []))
        }
        waiting += bytes.count
    }

    package func flush(to socket: Int32) {
        while !isEmpty {
            let total = pieces[0].bytes.count
            let sent = pieces[0].bytes.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[head...])
                return BusOutput.send(rest, head == 0 ? pieces[0].descriptors : [], to: socket)
            }
            guard let sent else {
                isBroken = true
                removeAll()
                return
            }
            if sent == 0 { return }
            if head == 0 {
                pieces[0].descriptors.forEach { Glibc.close($0) }
                pieces[0].descriptors = []
            }
            head += sent
            waiting -= sent
            stalledSince = isEmpty ? nil : .now
            if head == total {
                pieces.removeFirst()
                head = 0
            }
        }
    }

    private func removeAll() {
        for piece in pieces { piece.descriptors.forEach { Glibc.close($0) } }
        pieces = []
        (head, waiting) = (0, 0)
        stalledSince = nil
    }

    /// Writes without waiting and without SIGPIPE. See sendmsg(2).
    ///
    /// - Returns: how many bytes the socket accepted, 0 if it is full; nil if it accepts nothing any more.
    package static func send(
        _ bytes: UnsafeRawBufferPointer,
        _ descriptors: [Int32] = [],
        to socket: Int32
    ) -> Int? {
        guard let start = bytes.baseAddress else { return 0 }
        while true {
            let sent = descriptors.withUnsafeBufferPointer {
                linux_send(socket, start, bytes.count, $0.baseAddress, Int32($0.count))
            }
            if sent >= 0 { return sent }
            switch errno {
            case EINTR: continue
            case EAGAIN, ENOBUFS: return 0
            default: return nil
            }
        }
    }
}

package func capitalized(_ title: String) -> String {
    title.prefix(1).uppercased() + title.dropFirst()
}

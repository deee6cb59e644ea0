// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import CLinux
import Glibc
package import NotifyNames

/// The socket of a connection to a bus.
///
/// libdbus finds the bus and authenticates; then the socket is ours, before a single message has passed, and libdbus'
/// connection is given up: there must be only one reader, or what the bus had yet to deliver is lost when it hangs up.
package final class BusSocket {
    /// How much may be queued for writing, in bytes. A bus that is reading accepts much more than this in a second.
    private static let limit = 268_435_456

    /// libdbus' half of an entry, until the bus has accepted the connection.
    private var entry: OpaquePointer?
    private var own: Int32 = -1
    private let output = BusOutput()
    /// Whether the bus has closed the connection, and everything it had sent before has been read.
    private(set) var hasEnded = false
    /// The GUID of the bus: another one at the same address, or the same one restarted, has another GUID.
    private(set) var busGUID = ""

    package init(address: String, title: String) throws(NotifyBusError) {
        var error = nb_error()
        guard let entry = nb_enter(address, &error) else {
            let (reason, name) = (BusSocket.text(&error.message), BusSocket.text(&error.name))
            // These concern this program's own resources; there may be a bus all the same.
            let isOurs = ["org.freedesktop.DBus.Error.LimitsExceeded", "org.freedesktop.DBus.Error.NoMemory"]
                .contains(name)
            throw NotifyBusError(
                isOurs ? .failed : .noBus,
                "\(capitalized(title)) cannot be reached: \(reason).",
                busErrorName: name
            )
        }
        self.entry = entry
        keepFromChild(nb_entry_fd(entry))
    }

    deinit {
        if let entry {
            let descriptor = nb_entry_fd(entry)
            if descriptor >= 0 { linux_keep_in_child(descriptor) }
            nb_give_up(entry)
        }
        guard own >= 0 else { return }
        linux_keep_in_child(own)
        // The lifecycle agent may hold a duplicate of the socket, so close(2) alone would not end the connection.
        shutdown(own, Int32(SHUT_RDWR))
        close(own)
    }

    package var descriptor: Int32 { entry.map { nb_entry_fd($0) } ?? own }

    /// Whether the bus has accepted the connection.
    package var isOpen: Bool { own >= 0 }

    /// How many bytes are queued.
    package var waitingCount: Int { output.count }

    /// How many bytes have been written or queued so far.
    private(set) var sentCount: UInt64 = 0

    /// Since when the bus has accepted nothing of what is queued; nil if nothing is.
    package var stalledSince: MonotonicTime? { isOpen ? output.stalledSince : nil }

    /// The events for which to poll(2) the socket.
    package var events: Int16 {
        if let entry { return nb_entry_events(entry) }
        return output.isEmpty ? Int16(POLLIN) : Int16(POLLIN) | Int16(POLLOUT)
    }

    /// Continues with what poll(2) reports as possible, before the bus has accepted the connection.
    package func enter(_ events: Int16) {
        guard let entry else { return }
        switch nb_entry_service(entry, events) {
        case NB_LET_IN:
            var guid = nb_error()
            linux_keep_in_child(nb_entry_fd(entry))
            own = nb_take_socket(entry, &guid)
            guard own >= 0 else {
                hasEnded = true
                return
            }
            self.entry = nil
            busGUID = BusSocket.text(&guid.message)
            keepFromChild(own)
            output.flush(to: own)
        case NB_REFUSED: hasEnded = true
        default: break
        }
    }

    /// Reads once what is available, without waiting.
    package func fill(_ reader: MessageReader) {
        if reader.fill(from: own) == 0 { hasEnded = true }
    }

    /// Writes a message after the queued ones; what the socket does not accept now is queued too.
    ///
    /// - Parameter descriptors: are sent along. They still belong to the caller.
    /// - Returns: false if too much is queued, or the descriptors can't be sent; then no part of the message is.
    package func write(_ bytes: UnsafeRawBufferPointer, _ descriptors: [Int32] = []) -> Bool {
        guard bytes.count <= BusSocket.limit - output.count else { return false }
        sentCount &+= UInt64(bytes.count)
        return output.write(bytes, descriptors, to: isOpen && !gathers ? own : nil)
    }

    /// Writes what is queued, as far as the socket accepts it.
    package func flush() {
        if isOpen { output.flush(to: own) }
    }

    /// Whether messages are held back to be written together: the bus then receives them without others in between.
    package var gathers = false {
        didSet { if !gathers { flush() } }
    }

    /// A child would share the socket: its messages would get in between, and the bus would wait for both to close it.
    private func keepFromChild(_ descriptor: Int32) {
        if descriptor >= 0 { _ = linux_close_in_child(descriptor, true) }
    }

    private static func text<Buffer>(_ buffer: inout Buffer) -> String {
        withUnsafeBytes(of: &buffer) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
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

    private var pieces: [Piece] = []
    /// How much of the first piece has been written.
    private var head = 0
    private(set) var count = 0
    /// Since when the socket has accepted nothing; nil if nothing is queued.
    private(set) var stalledSince: MonotonicTime?
    /// Whether the other side has stopped reading. What it has yet to say is still read.
    private var isBroken = false

    package init() {}

    deinit {
        for piece in pieces { piece.descriptors.forEach { Glibc.close($0) } }
    }

    package var isEmpty: Bool { count == 0 }

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
        if isEmpty { stalledSince = .now }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
        if descriptors.isEmpty || written > 0 {
            append(rest)
        } else {
            let duplicates = descriptors.map { fcntl($0, F_DUPFD_CLOEXEC, 0) }
            guard !duplicates.contains(-1) else {
                duplicates.forEach { if $0 >= 0 { Glibc.close($0) } }
                return false
            }
            pieces.append(Piece(bytes: Array(rest), descriptors: duplicates))
            count += rest.count
        }
        return true
    }

    private func append(_ bytes: UnsafeRawBufferPointer) {
        if pieces.last?.descriptors.isEmpty == true {
            pieces[pieces.count - 1].bytes.append(contentsOf: bytes)
        } else {
            pieces.append(Piece(bytes: Array(bytes), descriptors: []))
        }
        count += bytes.count
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
            count -= sent
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
        (head, count) = (0, 0)
        stalledSince = nil
    }

    /// - Returns: how many bytes the socket accepted, 0 if it is full; nil if it accepts nothing any more.
    private static func send(_ bytes: UnsafeRawBufferPointer, _ descriptors: [Int32], to socket: Int32) -> Int? {
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

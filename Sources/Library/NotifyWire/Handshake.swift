// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import CLinux
package import Glibc
package import NotifyNames

/// The opening of a connection: the bus authenticates it and answers Hello, within one deadline.
///
/// libdbus finds the bus and authenticates; then the socket is ours, before a single message has passed, and libdbus'
/// connection is given up: there must be only one reader, or what the bus had yet to deliver is lost when it hangs up.
///
/// It is used by one thread at a time, which its owner ensures.
package final class Handshake {
    /// How long a bus may take, in milliseconds.
    package static let usualLimit: Int64 = 10_000

    /// What is being opened. What is sent on it waits.
    package let connection: BusConnection
    /// When the bus must have accepted the connection.
    package let limit: MonotonicTime
    private let title: String
    private let helloSerial: UInt32
    /// libdbus' half, until the bus has authenticated it.
    private var entry: OpaquePointer?
    /// Its socket, which the program may have closed.
    private var own: OwnDescriptor
    /// Has the socket closed in the child of fork(2). Forks wait while it is opened and not yet marked.
    private var mark: OpaquePointer?

    /// Connects.
    ///
    /// - Parameters:
    ///   - title: how to refer to the bus in a sentence.
    ///   - takesDescriptors: whether messages may carry descriptors. If not, the kernel drops them.
    package init(
        address: String,
        title: String,
        takesDescriptors: Bool = false,
        until limit: MonotonicTime = .now + Handshake.usualLimit
    ) throws(NotifyBusError) {
        linux_delay_forks()
        defer { linux_allow_forks() }
        var error = nb_error()
        guard let entry = nb_enter(address, limit.millisecondsFromNow, &error) else {
            throw Handshake.connectError(title, reason: text(&error.message), name: text(&error.name))
        }
        self.entry = entry
        own = OwnDescriptor(nb_entry_fd(entry))
        mark = linux_close_in_child(nb_entry_fd(entry), true)
        connection = BusConnection(takesDescriptors: takesDescriptors)
        helloSerial = connection.send(.busCall("Hello"))
        (self.title, self.limit) = (title, limit)
    }

    deinit {
        guard let entry else { return }
        linux_delay_forks()
        defer { linux_allow_forks() }
        linux_keep_in_child(mark)
        nb_give_up(entry)
    }

    /// The socket. It changes once the bus has authenticated it.
    package var descriptor: Int32 { entry.map { nb_entry_fd($0) } ?? connection.descriptor }

    /// The events for which to poll(2) the socket.
    package var events: Int16 { entry.map { nb_entry_events($0) } ?? connection.events }

    /// Goes on with what poll(2) has reported for the socket.
    ///
    /// - Returns: the answer to Hello, valid until the connection reads on, or why there is none; nil while it is awaited.
    package func proceed(_ events: Int16) -> Result<BusMessage, NotifyBusError>? {
        if events != 0 {
            if let entry {
                guard own.isOurs, authenticate(entry, events) else { return .failure(refusal) }
            } else {
                connection.report(events)
            }
        }
        return answer() ?? (limit <= .now ? .failure(.timedOut("accept the connection")) : nil)
    }

    /// Waits for the answer to Hello.
    ///
    /// - Parameter note: told the socket that is waited for, each time that it is another one.
    package func wait(
        _ note: (Int32) throws(NotifyBusError) -> Void = { _ in }
    ) throws(NotifyBusError) -> BusMessage {
        var known: Int32 = -1
        var events: Int16 = 0
        while true {
            if let outcome = proceed(events) { return try outcome.get() }
            if descriptor != known { try note(descriptor) }
            known = descriptor
            var request = pollfd(fd: descriptor, events: self.events, revents: 0)
            events = poll(&request, 1, limit.millisecondsFromNow) > 0 ? request.revents : 0
        }
    }

    /// - Returns: false if the bus has refused us.
    private func authenticate(_ entry: OpaquePointer, _ events: Int16) -> Bool {
        switch nb_entry_service(entry, events) {
        case NB_LET_IN:
            linux_delay_forks()
            defer { linux_allow_forks() }
            var guid = nb_error()
            let socket = nb_take_socket(entry, &guid)
            guard socket >= 0 else { return false }
            self.entry = nil
            linux_keep_in_child(mark)
            connection.begin(socket, busGUID: text(&guid.message))
            connection.writeQueued()
            return true
        case NB_REFUSED: return false
        default: return true
        }
    }

    private func answer() -> Result<BusMessage, NotifyBusError>? {
        while let message = connection.next() {
            switch message.kind {
            case .reply where message.replySerial == helloSerial && message.isFromBus: return .success(message)
            case .error where message.replySerial == helloSerial && message.isFromBus:
                return .failure(message.fault.error(of: .noBus, by: title))
            case .disconnected: return .failure(refusal)
            default: continue
            }
        }
        return nil
    }

    // MARK: - Errors

    private var refusal: NotifyBusError {
        NotifyBusError(
            .noBus,
            "\(capitalized(title)) closed the connection instead of accepting it; "
                + "it may belong to another user."
        )
    }

    private static func connectError(_ title: String, reason: String, name: String) -> NotifyBusError {
        if name == NB_TIMED_OUT { return .timedOut("accept the connection") }
        // These concern this program's own resources; there may be a bus all the same.
        let isOurs = ["org.freedesktop.DBus.Error.LimitsExceeded", "org.freedesktop.DBus.Error.NoMemory"].contains(name)
        return NotifyBusError(
            isOurs ? .failed : .noBus,
            "\(capitalized(title)) cannot be reached: \(reason).",
            busErrorName: name
        )
    }
}

extension NotifyBusError {
    package static func timedOut(_ what: String) -> NotifyBusError {
        NotifyBusError(.timedOut, "The bus did not \(what) in time; it may be stopped or overloaded.")
    }
}

private func text<Buffer>(_ buffer: inout Buffer) -> String {
    withUnsafeBytes(of: &buffer) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}

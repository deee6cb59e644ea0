// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import CForkGuard
import Glibc
package import NotifyNames

/// The opening of a connection: the bus authenticates it and answers Hello, within one deadline.
///
/// libdbus finds the bus and authenticates; then the socket is ours, before a single message has passed, and libdbus'
/// connection is given up: there must be only one reader, or what the bus had yet to deliver is lost when it hangs up.
///
/// libdbus names the user that it is in its own user namespace. If the bus knows this user by another number, and so turns
/// it away, we authenticate once more without naming one. A bus that offers ANONYMOUS, too, which no distribution's does,
/// authenticates libdbus by that and then closes the connection; it is not asked again.
///
/// It is used by one thread at a time, which its owner ensures.
package final class Handshake {
    /// How long a bus may take, in milliseconds.
    package static let usualLimit: Int64 = 10_000

    /// The connection that is being opened. Messages sent on it wait.
    package let connection: BusConnection
    /// When the bus must have accepted the connection.
    package let limit: MonotonicTime
    private let address: String
    private let title: String
    private let helloSerial: UInt32
    private var way: Way
    /// The socket of libdbus, which the program may have closed.
    private var own: OwnDescriptor
    /// Has the socket closed in the child of fork(2). Forks wait while it is opened and not yet marked.
    private var mark: OpaquePointer?

    /// The way to authenticate, until the bus has let us in.
    private enum Way {
        /// libdbus: its half of the connection.
        case libdbus(OpaquePointer)
        case unnamed(UnnamedEntry)
        case isOver
    }

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
        fork_delay()
        defer { fork_allow() }
        var error = nb_error()
        guard let entry = nb_enter(address, limit.millisecondsFromNow, &error) else {
            throw Handshake.connectError(title, reason: text(&error.message), name: text(&error.name))
        }
        way = .libdbus(entry)
        own = OwnDescriptor(nb_entry_fd(entry))
        mark = fork_close_in_child(nb_entry_fd(entry), true)
        connection = BusConnection(takesDescriptors: takesDescriptors)
        helloSerial = connection.send(.busCall("Hello"))
        (self.address, self.title, self.limit) = (address, title, limit)
    }

    deinit { giveUp() }

    /// Ends what has not been let in.
    private func giveUp() {
        if case .isOver = way { return }
        fork_delay()
        defer { fork_allow() }
        fork_keep_in_child(mark)
        switch way {
        case .libdbus(let entry): nb_give_up(entry)
        case .unnamed(let entry): entry.socket?.close()
        case .isOver: break
        }
        (mark, way) = (nil, .isOver)
    }

    /// The socket, which may change until the bus has authenticated it; -1 if there is none.
    package var descriptor: Int32 {
        switch way {
        case .libdbus(let entry): nb_entry_fd(entry)
        case .unnamed(let entry): entry.socket?.number ?? -1
        case .isOver: connection.descriptor
        }
    }

    /// The events for which to poll(2) the socket.
    package var events: Int16 {
        switch way {
        case .libdbus(let entry): nb_entry_events(entry)
        case .unnamed(let entry): entry.events
        case .isOver: connection.events
        }
    }

    /// When to go on even if poll(2) has reported nothing.
    package var deadline: MonotonicTime {
        if case .unnamed(let entry) = way, let next = entry.nextTry { min(next, limit) } else { limit }
    }

    /// Goes on with what poll(2) has reported for the socket.
    ///
    /// - Returns: the answer to Hello, valid until the connection reads on, or why there is none; nil while it is awaited.
    package func proceed(_ events: Int16) -> Result<BusMessage, NotifyBusError>? {
        switch way {
        case .libdbus(let entry) where events != 0:
            guard own.isOurs else { return .failure(refusal) }
            switch nb_entry_service(entry, events) {
            case NB_LET_IN: if let error = takeSocket(entry) { return .failure(error) }
            case NB_REFUSED:
                giveUp()
                guard proceed(UnnamedEntry(address: address)) else { return .failure(refusal) }
            default: break
            }
        case .unnamed(let entry): guard proceed(entry) else { return .failure(refusal) }
        case .isOver where events != 0: connection.report(events)
        case .libdbus, .isOver: break
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
            events = poll(&request, 1, deadline.millisecondsFromNow) > 0 ? request.revents : 0
        }
    }

    /// - Returns: an error if there is no descriptor for it.
    private func takeSocket(_ entry: OpaquePointer) -> NotifyBusError? {
        fork_delay()
        defer { fork_allow() }
        var guid = nb_error()
        let socket = nb_take_socket(entry, &guid)
        guard socket >= 0 else {
            return NotifyBusError(.failed, "\(capitalized(title)) cannot be reached: \(describe(errno: errno)).")
        }
        begin(socket, busGUID: text(&guid.message), hasConfirmedUser: true)
        return nil
    }

    /// - Returns: false if the bus has refused us.
    private func proceed(_ unnamed: UnnamedEntry) -> Bool {
        fork_delay()
        defer { fork_allow() }
        var entry = unnamed
        if let next = entry.nextTry, next <= .now {
            guard entry.connect() else { return false }
            mark = entry.socket.flatMap { fork_close_in_child($0.number, true) }
        }
        let progress = entry.socket == nil ? .isUnderWay : entry.proceed()
        way = .unnamed(entry)
        if progress == .isLetIn { begin(descriptor, busGUID: entry.busGUID, hasConfirmedUser: false) }
        return progress != .isRefused
    }

    private func begin(_ socket: Int32, busGUID: String, hasConfirmedUser: Bool) {
        fork_keep_in_child(mark)
        (mark, way) = (nil, .isOver)
        connection.begin(socket, busGUID: busGUID, hasConfirmedUser: hasConfirmedUser)
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

/// What the shim has put into one of its buffers.
func text<Buffer>(_ buffer: inout Buffer) -> String {
    withUnsafeBytes(of: &buffer) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}

// SPDX-License-Identifier: Apache-2.0

/// What a connection does besides posts: it answers calls and makes them.
///
/// All of it happens on the thread that drives the connection, in the order in which messages came, including posts: the
/// lifecycle protocol depends on that order. So nothing here may block.
package protocol BusPeer: AnyObject {
    /// Whether to keep the connection even if no names are heard on it.
    var keepsConnection: Bool { get }
    /// Whether calls and signals may carry descriptors.
    var takesDescriptors: Bool { get }
    /// When `deadlineHasPassed` is to be called; nil means never.
    var deadline: MonotonicTime? { get }
    func deadlineHasPassed()
    /// The bus has accepted the connection. The registrations follow after this.
    func linkIsReady(_ link: BusLink)
    /// The connection is lost, and with it everything that was requested on it.
    func linkIsLost(_ error: NotifyBusError)
    /// The connection is closed for good.
    func linkIsClosed()
    /// A method call has arrived whose arguments have not been read yet, and need not be if it is refused anyway.
    ///
    /// - Returns: whether the peer has refused it, and so needs no more of it.
    func refuses(_ call: BusCall.Head) -> Bool
    /// Whether the arguments of large calls are left to be read later, when it is their turn.
    var readsLargeCallsLater: Bool { get }
    /// Much has been read since the last time: the bus may have had so much that it has left out signals.
    func hasReadMuch()
    /// A method call has arrived.
    ///
    /// - Returns: false if there is no such method; the caller receives an error.
    func handle(_ call: BusCall) -> Bool
    /// A reply or an error reply has been sent to a call.
    func hasReplied(to caller: String, bytes: Int)
    /// How long the bus may accept nothing of what is to be sent before the connection is given up, in milliseconds; nil
    /// means forever.
    var stallLimit: Int64? { get }
    /// A signal that is not a post. Descriptors among its arguments belong to the handler.
    func handle(_ signal: BusSignal)
}

extension BusPeer {
    package var takesDescriptors: Bool { false }
    package var deadline: MonotonicTime? { nil }
    package var stallLimit: Int64? { nil }
    package func deadlineHasPassed() {}
    package func refuses(_ call: BusCall.Head) -> Bool { false }
    package var readsLargeCallsLater: Bool { false }
    package func hasReadMuch() {}
    package func hasReplied(to caller: String, bytes: Int) {}
    package func linkIsClosed() {}
}

/// Hears names on a connection: takes posts from it, and wants it back when it is lost.
protocol BusHearer: AnyObject {
    /// The bus has accepted the connection, and the peer has been told.
    func linkIsReady()
    /// The connection is lost. Calls fail after this, and then the peer is told.
    func linkIsLost()
    /// All others have been told that the connection is lost.
    ///
    /// - Parameters:
    ///   - wasReady: whether the bus had accepted it.
    ///   - isNeeded: whether it will be made again for the peer.
    /// - Returns: whether to make it again.
    func linkIsGone(_ error: NotifyBusError, wasReady: Bool, isNeeded: Bool) -> Bool
}

/// A method call that has arrived.
package struct BusCall: Sendable {
    package let sender: String
    package let serial: UInt32
    package let path: String
    package let interface: String
    package let member: String
    package let wantsReply: Bool
    /// Descriptors among them belong to the handler of the call.
    package private(set) var arguments: [BusValue]
    /// Its size in the bus's format, in bytes.
    package let size: Int
    package let hasDescriptors: Bool
    /// The message, if its arguments have yet to be read.
    private var unread: Unread?
    /// What is to exist until the call has been answered, or can't be any more.
    package var lifetime: (any AnyObject & Sendable)?

    /// What is known of a call before its arguments are read; valid only while it is being handled.
    package struct Head {
        package let sender: String
        package let message: BusMessage

        package var wantsReply: Bool { message.wantsReply }
        package var size: Int { message.length }
        package func hasMember(_ name: String) -> Bool { message.hasMember(name) }
    }

    private struct Unread: Sendable {
        let bytes: [UInt8]
        let bodyOffset: Int
        var descriptors: MessageDescriptors?
    }

    /// The size from which on a call is large, in bytes: the time to read its arguments is no longer negligible.
    static let largeSize = 16_384

    init?(_ message: BusMessage, from sender: String, readsArguments: Bool) {
        guard let path = message.path, let member = message.member else { return nil }
        self.sender = sender
        serial = message.serial
        self.path = String(cString: path)
        // A call may omit the interface.
        interface = message.interface.map { String(cString: $0) } ?? ""
        self.member = String(cString: member)
        wantsReply = message.wantsReply
        size = message.bytes.count
        hasDescriptors = message.descriptorCount > 0
        arguments = []
        if readsArguments {
            guard let arguments = message.arguments() else { return nil }
            self.arguments = arguments
        } else {
            let bytes = Array(message.bytes)
            unread = Unread(bytes: bytes, bodyOffset: message.bodyOffset, descriptors: message.descriptors)
        }
    }

    /// Reads the arguments, if that was left for later.
    ///
    /// - Returns: false if they are not valid.
    package mutating func readArguments() -> Bool {
        guard let unread else { return true }
        self.unread = nil
        let values: [BusValue]? = unread.bytes.withUnsafeBytes { bytes in
            guard var message = BusMessage(bytes, bodyOffset: unread.bodyOffset) else { return nil }
            message.descriptors = unread.descriptors
            return message.arguments()
        }
        arguments = values ?? []
        return values != nil
    }

    /// The call without its arguments, for a handler that keeps it to answer it later.
    package var withoutArguments: BusCall {
        var call = self
        (call.arguments, call.unread) = ([], nil)
        return call
    }

    /// The descriptors among its arguments.
    package var descriptors: [Int32] {
        if !hasDescriptors { return [] }
        if let unread { return unread.descriptors?.all ?? [] }
        var descriptors: [Int32] = []
        for argument in arguments { argument.collectDescriptors(into: &descriptors) }
        return descriptors
    }

    /// The call with -1 in place of its descriptors, which are closed.
    package var closingDescriptors: BusCall {
        var call = self
        call.unread?.descriptors = nil
        arguments.closeDescriptors()
        call.arguments = arguments.map(\.withoutDescriptors)
        return call
    }
}

package typealias BusAnswer = Result<[BusValue], BusFault>

extension Result where Failure == BusFault {
    /// Whether there was no reply before the connection was lost.
    var isOfLostConnection: Bool { if case .failure(let fault) = self { fault.isOfLostConnection } else { false } }
}

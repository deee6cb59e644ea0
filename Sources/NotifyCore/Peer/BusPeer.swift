// SPDX-License-Identifier: Apache-2.0

/// What a center's observing connection does besides posts: it answers calls and makes them.
///
/// All of it happens on the reading thread, in the order in which messages came, including posts: the lifecycle
/// protocol depends on that order. So nothing here may block.
package protocol BusPeer: AnyObject, Sendable {
    /// Whether to keep the connection even without observers.
    var keepsConnection: Bool { get }
    /// Whether calls and signals may carry descriptors.
    var takesDescriptors: Bool { get }
    /// When `deadlineHasPassed` is to be called; nil means never.
    var deadline: MonotonicTime? { get }
    func deadlineHasPassed(_ link: borrowing BusLink)
    /// What is observed over the connection has changed.
    func namesHaveChanged(names: [String], prefixes: [String], added: Bool, _ link: borrowing BusLink)
    /// The bus has accepted the connection. The registrations follow after this.
    func linkIsReady(_ link: borrowing BusLink)
    /// The connection is lost, and with it everything that was requested on it.
    func linkIsLost(_ error: NotifyBusError)
    /// The same, for a peer that has something to change in the connection.
    func linkIsLost(_ error: NotifyBusError, on link: borrowing BusLink)
    /// The bus has replied about one of the rules that are sent again.
    func ruleIsAnswered(_ link: borrowing BusLink)
    /// Waits until posts that were made so far have come, where more than the bus stands between.
    ///
    /// - Returns: false if nothing does; then `completion` is not called.
    func synchronize(
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (borrowing BusLink) -> Void
    ) -> Bool
    /// A method call has arrived whose arguments have not been read yet, and need not be if it is refused anyway.
    ///
    /// - Returns: whether the peer has refused it, and so needs no more of it.
    func refuses(_ call: BusCall.Head, on link: borrowing BusLink) -> Bool
    /// A method call has arrived.
    ///
    /// - Returns: false if there is no such method; the caller receives an error.
    func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool
    /// A reply or an error reply has been sent to a call.
    func hasReplied(to caller: String, bytes: Int, on link: borrowing BusLink)
    /// How long the bus may accept nothing of what is to be sent before the connection is given up, in milliseconds; nil
    /// means forever.
    var stallLimit: Int64? { get }
    /// A signal that is not a post. Descriptors among its arguments belong to the handler.
    func handle(_ signal: BusSignal, on link: borrowing BusLink)
    /// A post of a name that the peer holds; see ``BusLink/hold(names:prefixes:then:)``.
    func handle(post name: NotifyName, on link: borrowing BusLink)
}

extension BusPeer {
    package func handle(post name: NotifyName, on link: borrowing BusLink) {}
}

extension BusPeer {
    package var takesDescriptors: Bool { false }
    package var deadline: MonotonicTime? { nil }
    package var stallLimit: Int64? { nil }
    package func deadlineHasPassed(_ link: borrowing BusLink) {}
    package func refuses(_ call: BusCall.Head, on link: borrowing BusLink) -> Bool { false }
    package func hasReplied(to caller: String, bytes: Int, on link: borrowing BusLink) {}
    package func linkIsLost(_ error: NotifyBusError, on link: borrowing BusLink) { linkIsLost(error) }
    package func ruleIsAnswered(_ link: borrowing BusLink) {}
    package func synchronize(
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (borrowing BusLink) -> Void
    ) -> Bool { false }
    package func namesHaveChanged(names: [String], prefixes: [String], added: Bool, _ link: borrowing BusLink) {}
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
    /// Whatever is to exist as long as somebody may answer the call.
    package var keeper: (any AnyObject & Sendable)?

    /// What is known of a call before its arguments are read; valid only while it is being handled.
    package struct Head {
        package let sender: String
        package let message: BusMessage

        package var wantsReply: Bool { message.wantsReply }
        package var size: Int { message.bytes.count }
        package func hasMember(_ name: String) -> Bool { message.hasMember(name) }
    }

    /// The call without its arguments, for whoever keeps it to answer it later.
    package var withoutArguments: BusCall {
        var call = self
        call.arguments = []
        return call
    }

    /// The descriptors among its arguments.
    package var descriptors: [Int32] {
        if !hasDescriptors { return [] }
        var descriptors: [Int32] = []
        for argument in arguments { argument.collectDescriptors(into: &descriptors) }
        return descriptors
    }

    /// The call with -1 in place of its descriptors, which are closed.
    package var closingDescriptors: BusCall {
        var call = self
        arguments.closeDescriptors()
        call.arguments = arguments.map(\.withoutDescriptors)
        return call
    }
}

/// A signal that has arrived.
package struct BusSignal: Sendable {
    package let sender: String
    package let path: String
    package let interface: String
    package let member: String
    package let arguments: [BusValue]
}

package typealias BusAnswer = Result<[BusValue], BusFault>

extension Result where Failure == BusFault {
    /// Whether there was no reply before the connection was lost.
    var isOfLostConnection: Bool { if case .failure(let fault) = self { fault.isOfLostConnection } else { false } }
}

/// The observing connection, while the reading thread is handling it.
package struct BusLink: ~Copyable {
    let observing: ObservingConnection
    let engine: Engine

    // Inlined, it makes the optimizer of Swift 6.3.1 crash: "Cannot initialize a nonCopyable type with a guaranteed
    // value".
    @inline(never)
    init(observing: ObservingConnection, engine: Engine) {
        self.observing = observing
        self.engine = engine
    }

    /// The socket. It still belongs to the connection.
    package var descriptor: Int32 { observing.connection?.descriptor ?? -1 }

    /// Calls a method; `completion` receives the reply, on this thread.
    ///
    /// Only the called peer can reply. So a call to a well-known name first asks the bus who owns it now, and goes to
    /// that connection.
    package func call(
        _ destination: String,
        path: String,
        interface: String,
        member: String,
        _ arguments: [BusValue] = [],
        activates: Bool = false,
        then completion: @escaping @Sendable (BusAnswer, borrowing BusLink) -> Void
    ) {
        let peer: BusCalls<ObservingConnection.Question>.Peer
        if destination == BusMessage.busName {
            peer = .bus
        } else if destination.utf8.first == UInt8(ascii: ":") {
            peer = .connection(destination)
        } else {
            let kept = KeptArguments(arguments)
            return findOwner(of: destination, activates: activates) { owner, link in
                switch owner {
                case .failure(let fault): completion(.failure(fault), link)
                case .success(let owner):
                    link.call(
                        owner,
                        path: path,
                        interface: interface,
                        member: member,
                        kept.values
                    ) { answer, link in
                        // An owner that has left in the meantime is one that has not replied.
                        let hasLeft = BusFault(name: BusFault.noReply, message: "\(owner) has left the bus.")
                        let isGone = { (fault: BusFault) in fault.name == BusFault.noOwner(of: owner).name }
                        completion(answer.mapError { isGone($0) ? hasLeft : $0 }, link)
                    }
                }
            }
        }
        observing.send(
            .call(destination, path: path, interface: interface, member: member, arguments, activates: activates),
            to: peer,
            .call(completion),
            on: engine
        )
    }

    /// Finds the unique name of the connection that owns a well-known name.
    ///
    /// - Parameter activates: whether the bus should start the owner if there is none.
    package func findOwner(
        of name: String,
        activates: Bool = false,
        then completion: @escaping @Sendable (Result<String, BusFault>, borrowing BusLink) -> Void
    ) {
        callBus("GetNameOwner", [.string(name)]) { answer, link in
            switch answer {
            case .success(let values):
                let owner = values.first?.string
                completion(owner.map { .success($0) } ?? .failure(.noOwner(of: name)), link)
            case .failure(let fault) where activates && fault.name == BusFault.noOwner(of: name).name:
                link.callBus("StartServiceByName", [.string(name), .uint32(0)]) { answer, link in
                    switch answer {
                    case .failure(let fault): completion(.failure(fault), link)
                    case .success: link.findOwner(of: name, then: completion)
                    }
                }
            case .failure(let fault):
                completion(.failure(fault), link)
            }
        }
    }

    /// Calls a method of the bus.
    ///
    /// - Parameter interface: the bus's own unless given.
    package func callBus(
        _ member: String,
        _ arguments: [BusValue],
        of interface: String? = nil,
        then completion: @escaping @Sendable (BusAnswer, borrowing BusLink) -> Void = { _, _ in }
    ) {
        let bus = BusMessage.busName
        let path = "/org/freedesktop/DBus"
        call(bus, path: path, interface: interface ?? bus, member: member, arguments, then: completion)
    }

    /// Sends what `body` sends as a unit, so that the bus passes on nothing in between.
    package func gathering(_ body: (borrowing BusLink) -> Void) {
        // Another connection may have replaced it.
        guard let connection = observing.connection, !connection.gathers else { return body(self) }
        connection.gathers = true
        body(self)
        connection.gathers = false
    }

    /// Calls a method without requesting a reply.
    package func tell(
        _ destination: String,
        path: String,
        interface: String,
        member: String,
        _ arguments: [BusValue]
    ) {
        _ = observing.connection?.send(
            .call(
                destination,
                path: path,
                interface: interface,
                member: member,
                arguments,
                activates: false,
                wantsReply: false
            )
        )
    }

    package func emit(
        to destination: String? = nil,
        path: String,
        interface: String,
        member: String,
        _ arguments: [BusValue]
    ) {
        let signal = OutgoingMessage.signal(
            to: destination,
            path: path,
            interface: interface,
            member: member,
            arguments
        )
        _ = observing.connection?.send(signal)
    }

    package func reply(to call: BusCall, _ arguments: [BusValue] = []) {
        guard call.wantsReply else { return }
        send(.reply(to: call.sender, call.serial, arguments), inReplyTo: call.sender)
    }

    package func refuse(_ call: BusCall, _ fault: BusFault) {
        guard call.wantsReply else { return }
        refuse(call.sender, call.serial, fault)
    }

    package func refuse(_ call: BusCall.Head, _ fault: BusFault) {
        if call.wantsReply { refuse(call.sender, call.message.serial, fault) }
    }

    private func refuse(_ caller: String, _ serial: UInt32, _ fault: BusFault) {
        send(.error(to: caller, serial, name: fault.name, fault.message), inReplyTo: caller)
    }

    private func send(_ message: OutgoingMessage, inReplyTo caller: String) {
        guard let connection = observing.connection else { return }
        let before = connection.sentCount
        _ = connection.send(message)
        observing.peer?.hasReplied(to: caller, bytes: Int(truncatingIfNeeded: connection.sentCount &- before), on: self)
    }

    /// When the thread began to work on what had arrived when it last woke up.
    package var batchStart: MonotonicTime { observing.batchStart }
}

/// Arguments of a call that can't be made yet. Descriptors among them are duplicated, as the caller may close its own.
private final class KeptArguments: Sendable {
    let values: [BusValue]

    init(_ values: [BusValue]) {
        self.values = values.map(\.duplicatingDescriptors)
    }

    deinit {
        values.closeDescriptors()
    }
}

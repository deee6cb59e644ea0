// SPDX-License-Identifier: Apache-2.0

/// What a center's observing connection does beside posts: it answers calls and makes them.
///
/// All of it happens on the thread that reads, in the order in which messages came, posts among them: that order is
/// what the lifecycle protocol is built on. So nothing here may wait.
package protocol BusPeer: AnyObject, Sendable {
    /// Whether the connection is to be kept even without observers.
    var keepsConnection: Bool { get }
    /// Whether calls and signals may bring descriptors along.
    var takesDescriptors: Bool { get }
    /// When `deadlineHasPassed` is to be called; nil means never.
    var deadline: MonotonicTime? { get }
    func deadlineHasPassed(_ link: borrowing BusLink)
    /// What is observed over the connection has changed.
    func namesHaveChanged(names: [String], prefixes: [String], added: Bool, _ link: borrowing BusLink)
    /// The bus has let the connection in. The registrations follow after this.
    func linkIsReady(_ link: borrowing BusLink)
    /// The connection is gone, and with it everything that was asked for on it.
    func linkIsLost(_ error: NotifyBusError)
    /// The same, for one that has something to change in the connection.
    func linkIsLost(_ error: NotifyBusError, on link: borrowing BusLink)
    /// The bus has answered for one rule of those that are sent again.
    func ruleIsAnswered(_ link: borrowing BusLink)
    /// Somebody calls a method.
    ///
    /// - Returns: false if there is no such method; the caller is told so.
    func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool
    /// A signal that is not a post. Descriptors among its arguments belong to whoever handles it.
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
    package func deadlineHasPassed(_ link: borrowing BusLink) {}
    package func linkIsLost(_ error: NotifyBusError, on link: borrowing BusLink) { linkIsLost(error) }
    package func ruleIsAnswered(_ link: borrowing BusLink) {}
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
    /// Descriptors among them belong to whoever handles the call.
    package let arguments: [BusValue]
}

/// A signal that has arrived.
package struct BusSignal: Sendable {
    package let sender: String
    package let path: String
    package let interface: String
    package let member: String
    package let arguments: [BusValue]
}

/// What a call was answered with, if not with a result.
package struct BusFault: Error, Sendable {
    package let name: String
    package let message: String

    package init(name: String, message: String) {
        self.name = name
        self.message = message
    }

    package static func accessDenied(_ message: String) -> BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.AccessDenied", message: message)
    }

    /// Whether the fault says that the other side of a call has gone.
    package var saysGone: Bool {
        switch name {
        case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
            "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected":
            true
        default: false
        }
    }

    static func noOwner(of name: String) -> BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.NameHasNoOwner", message: "Nobody owns the name '\(name)'.")
    }

    /// Whether the call had no answer when the connection was lost.
    var isOfLostConnection: Bool { name == BusFault.lost.name }

    static let lost = BusFault(name: "org.freedesktop.DBus.Error.Disconnected", message: "The connection is closed.")
}

package typealias BusAnswer = Result<[BusValue], BusFault>

extension Result where Failure == BusFault {
    /// Whether there was no answer before the connection was lost.
    var isOfLostConnection: Bool { if case .failure(let fault) = self { fault.isOfLostConnection } else { false } }
}

/// The observing connection, for as long as the thread that reads has it in hand.
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

    /// The socket. It stays the connection's.
    package var descriptor: Int32 { observing.connection?.descriptor ?? -1 }

    /// Calls a method; the answer comes to `completion`, on this thread.
    ///
    /// Only the one that was called can answer. So a call to a well-known name first asks the bus who owns it now, and
    /// goes to that connection.
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
                        kept.values,
                        then: completion
                    )
                }
            }
        }
        observing.send(
            .call(destination: destination, path: path, interface: interface, member: member, activates: activates),
            arguments,
            to: peer,
            .call(completion),
            on: engine
        )
    }

    /// Finds the unique name of the connection that owns a well-known name.
    ///
    /// - Parameter activates: whether the bus is to start the owner if there is none.
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
    package func callBus(
        _ member: String,
        _ arguments: [BusValue],
        then completion: @escaping @Sendable (BusAnswer, borrowing BusLink) -> Void = { _, _ in }
    ) {
        let bus = BusMessage.busName
        call(bus, path: "/org/freedesktop/DBus", interface: bus, member: member, arguments, then: completion)
    }

    /// Sends what `body` sends in one piece, so that the bus passes on nothing in between.
    package func gathering(_ body: (borrowing BusLink) -> Void) {
        // Another connection may have taken its place.
        guard let connection = observing.connection, !connection.gathers else { return body(self) }
        connection.gathers = true
        body(self)
        connection.gathers = false
    }

    /// Calls a method and wants no answer.
    package func tell(
        _ destination: String,
        path: String,
        interface: String,
        member: String,
        _ arguments: [BusValue]
    ) {
        let draft = BusConnection.Draft.oneWayCall(
            destination: destination,
            path: path,
            interface: interface,
            member: member
        )
        _ = observing.connection?.send(draft, arguments)
    }

    package func emit(
        to destination: String? = nil,
        path: String,
        interface: String,
        member: String,
        _ arguments: [BusValue]
    ) {
        let draft = BusConnection.Draft.signal(
            destination: destination,
            path: path,
            interface: interface,
            member: member
        )
        _ = observing.connection?.send(draft, arguments)
    }

    package func reply(to call: BusCall, _ arguments: [BusValue] = []) {
        guard call.wantsReply else { return }
        _ = observing.connection?.send(.reply(destination: call.sender, serial: call.serial), arguments)
    }

    package func refuse(_ call: BusCall, _ fault: BusFault) {
        guard call.wantsReply else { return }
        let draft = BusConnection.Draft.error(destination: call.sender, serial: call.serial, name: fault.name)
        _ = observing.connection?.send(draft, [.string(fault.message)])
    }
}

/// Arguments of a call that can't be made yet. Descriptors among them are duplicated, for the caller may close its own.
private final class KeptArguments: Sendable {
    let values: [BusValue]

    init(_ values: [BusValue]) {
        self.values = values.map(\.duplicatingDescriptors)
    }

    deinit {
        values.closeDescriptors()
    }
}

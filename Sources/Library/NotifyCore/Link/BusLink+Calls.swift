// SPDX-License-Identifier: Apache-2.0

// Calls, replies and signals.
extension BusLink {
    /// The socket. It still belongs to the connection.
    package var descriptor: Int32 { connection?.descriptor ?? -1 }

    /// Whether everything that has been read has been passed on, and everything that was sent is written.
    var isAtRest: Bool { connection?.waitingCount == 0 }

    /// Writes what has been sent so far, instead of at the end of this turn of an event loop.
    package func writeCollected() { connection?.writeQueued() }

    /// Leaves the connection as it is on the bus to the process that has a duplicate of the socket. From now on nothing
    /// is read.
    ///
    /// - Returns: what has been read and not handled; nil if there is no connection.
    package func leave() -> [UInt8]? { isReady ? connection?.leave() : nil }

    /// Waits until everything is written.
    package func flush(until limit: MonotonicTime) -> Bool { connection?.flush(until: limit) ?? false }

    /// Calls a method; `completion` receives the reply, on this thread.
    ///
    /// Only the called peer can reply. So a call to a well-known name first asks the bus who owns it now, and goes to
    /// that connection.
    ///
    /// - Parameter waitsForever: whether the peer may take as long as it likes, since it may be stopped.
    package func call(
        _ destination: String,
        path: String,
        interface: String,
        member: String,
        _ arguments: [BusValue] = [],
        activates: Bool = false,
        waitsForever: Bool = false,
        then completion: @escaping (BusAnswer) -> Void
    ) {
        let peer: BusCalls<BusLink.Question>.Peer
        if destination == BusMessage.busName {
            peer = .bus
        } else if destination.utf8.first == UInt8(ascii: ":") {
            peer = .connection(destination)
        } else {
            let kept = KeptArguments(arguments)
            return findOwner(of: destination, activates: activates) { [self] owner in
                switch owner {
                case .failure(let fault): completion(.failure(fault))
                case .success(let owner):
                    call(
                        owner,
                        path: path,
                        interface: interface,
                        member: member,
                        kept.values,
                        waitsForever: waitsForever
                    ) { completion($0.mapError { $0.ofOwner(owner) }) }
                }
            }
        }
        send(
            .call(destination, path: path, interface: interface, member: member, arguments, activates: activates),
            to: peer,
            completion,
            limit: waitsForever || peer == .bus ? nil : answerLimit
        )
    }

    /// Finds the unique name of the connection that owns a well-known name.
    ///
    /// - Parameter activates: whether the bus should start the owner if there is none.
    package func findOwner(
        of name: String,
        activates: Bool = false,
        then completion: @escaping (Result<String, BusFault>) -> Void
    ) {
        callBus("GetNameOwner", [.string(name)]) { [self] answer in
            switch answer {
            case .success(let values):
                let owner = values.first?.string
                completion(owner.map { .success($0) } ?? .failure(.noOwner(of: name)))
            case .failure(let fault) where activates && fault.name == BusFault.noOwner(of: name).name:
                startService(name) { [self] answer in
                    switch answer {
                    case .failure(let fault): completion(.failure(fault))
                    case .success: findOwner(of: name, then: completion)
                    }
                }
            case .failure(let fault):
                completion(.failure(fault))
            }
        }
    }

    /// Has the bus start the owner of a well-known name. That takes as long as the program does, so unlike other
    /// answers of the bus this one has a limit.
    package func startService(_ name: String, then completion: @escaping (BusAnswer) -> Void) {
        send(
            .busCall("StartServiceByName", [.string(name), .uint32(0)]),
            to: .bus,
            completion,
            limit: answerLimit
        )
    }

    /// Calls a method of the bus.
    ///
    /// - Parameter interface: the bus's own unless given.
    package func callBus(
        _ member: String,
        _ arguments: [BusValue],
        of interface: String? = nil,
        then completion: @escaping (BusAnswer) -> Void = { _ in }
    ) {
        send(.busCall(member, arguments, of: interface ?? BusMessage.busName), to: .bus, completion)
    }

    /// Sends what `body` sends as a unit, so that the bus passes on nothing in between.
    package func gathering(_ body: () -> Void) {
        // Another connection may have replaced it.
        guard let connection, !connection.gathers else { return body() }
        connection.gathers = true
        body()
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
        connection?.send(
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
        connection?.send(signal)
    }

    /// Posts a name on this connection, in order with the calls made on it.
    package func post(_ name: NotifyName) {
        emit(
            path: WireFormat.path(for: name),
            interface: WireFormat.interface(for: name),
            member: WireFormat.member,
            [.string(name.string)]
        )
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

    package func refuse(_ caller: String, _ serial: UInt32, _ fault: BusFault) {
        send(.error(to: caller, serial, name: fault.name, fault.message), inReplyTo: caller)
    }

    /// Replies to a call for which there is no method, or which is too long.
    func refuse(_ call: BusMessage) {
        if call.wantsReply { connection?.refuse(call) }
    }

    /// Whether strangers are answered: not while the bus has a lot to take.
    package var mayAnswerStrangers: Bool { connection?.mayAnswerStrangers == true }

    private func send(_ message: OutgoingMessage, inReplyTo caller: String) {
        guard let connection else { return }
        let before = connection.sentCount
        connection.send(message)
        peer?.hasReplied(to: caller, bytes: Int(truncatingIfNeeded: connection.sentCount &- before))
    }

    // MARK: - Questions

    /// Sends a message to which `peer` is to reply, and remembers the purpose.
    ///
    /// - Parameter limit: how long the reply may take, in milliseconds; nil means forever.
    func send(
        _ message: OutgoingMessage,
        to peer: BusCalls<Question>.Peer,
        _ question: @escaping Question,
        limit: Int64? = nil
    ) {
        if let connection {
            let serial = connection.nextSerial
            questions.begin(serial, to: peer, for: question, until: limit.map { .now + $0 })
            if connection.send(message) != 0 { return }
            questions.forget(serial)
        }
        answer(question, with: BusMessage(kind: .error))
    }

    /// Ends the calls that were not answered in time.
    func endLateQuestions() {
        guard let answerLimit, let questionDeadline, questionDeadline <= .now else { return }
        for question in questions.takeLate(at: .now) {
            question(.failure(.noAnswer(within: answerLimit)))
        }
    }

    func answer(_ question: Question, with message: BusMessage) {
        let values = message.kind == .reply ? message.arguments() : nil
        question(values.map { .success($0) } ?? .failure(message.fault))
    }
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

extension BusLink {
    /// Calls the agent that has this unique name; `completion` receives the reply, on this thread.
    package func call<Call: ProtocolCall>(
        _ call: Call,
        to agent: String,
        of service: LifecycleService = .agent,
        then completion: @escaping (Result<Call.Answer, BusFault>) -> Void
    ) {
        self.call(
            agent,
            path: service.path,
            interface: service.name,
            member: Call.member,
            call.arguments
        ) { answer in completion(answer.reading(Call.self)) }
    }

    /// Emits a signal of the agent, to everyone or to one connection.
    package func emit(
        _ signal: some ProtocolMessage,
        to destination: String? = nil,
        from service: LifecycleService = .agent
    ) {
        emit(
            to: destination,
            path: service.path,
            interface: service.name,
            member: type(of: signal).member,
            signal.arguments
        )
    }

    /// Calls the agent without requesting a reply.
    package func tell(_ call: some ProtocolCall, to agent: String, of service: LifecycleService = .agent) {
        tell(
            agent,
            path: service.path,
            interface: service.name,
            member: type(of: call).member,
            call.arguments
        )
    }
}

extension BusAnswer {
    /// The reply to a call; a fault if it does not conform to the protocol.
    package func reading<Call: ProtocolCall>(_ call: Call.Type) -> Result<Call.Answer, BusFault> {
        switch self {
        case .failure(let fault): return .failure(fault)
        case .success(let values):
            do throws(ArgumentError) {
                return .success(try Call.Answer(values))
            } catch {
                return .failure(.unreadableAnswer(to: Call.member))
            }
        }
    }
}

extension BusFault {
    /// What it means in the answer to a call to the owner of a name: one that has left in the meantime has not replied.
    func ofOwner(_ owner: String) -> BusFault {
        guard name == BusFault.noOwner(of: owner).name else { return self }
        return BusFault(name: BusFault.noReply, message: "\(owner) has left the bus.")
    }

    static func unreadableAnswer(to member: String) -> BusFault {
        BusFault(
            name: "org.freedesktop.DBus.Error.InvalidSignature",
            message: "The answer to \(member) is invalid."
        )
    }
}

// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// Calls the agent; `completion` receives the reply, on this thread.
    ///
    /// - Parameter activates: whether the bus may start the agent.
    package func call<Call: ProtocolCall>(
        _ call: Call,
        to agent: String = AgentInterface.name,
        of service: LifecycleService = .agent,
        activates: Bool = false,
        then completion: @escaping (Result<Call.Answer, BusFault>) -> Void
    ) {
        self.call(
            agent,
            path: service.path,
            interface: service.name,
            member: Call.member,
            call.arguments,
            activates: activates
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
    static func unreadableAnswer(to member: String) -> BusFault {
        BusFault(
            name: "org.freedesktop.DBus.Error.InvalidSignature",
            message: "The answer to \(member) is invalid."
        )
    }
}

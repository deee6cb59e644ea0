// SPDX-License-Identifier: Apache-2.0

// On a bus that several users share, any of them may own the agent's name. Only an agent of root or of this process's own
// user is asked, believed and obeyed.
extension BusLink {
    /// Determines whether a connection may be the agent.
    ///
    /// - Parameter completion: called with the reason why it may not: it belongs to another user, or the bus does not report
    ///   its user.
    package func checkAgent(_ owner: String, then completion: @escaping (Result<Void, BusFault>) -> Void) {
        findUser(of: owner) { [self] user in
            findOwnUser { own in
                switch (user, own) {
                case (.failure(let fault), _): completion(.failure(fault))
                case (.success(0), _): completion(.success(()))
                case (.success, .failure(let fault)): completion(.failure(fault))
                case (.success(let user), .success(let own)):
                    completion(user == own ? .success(()) : .failure(.foreignAgent(of: user)))
                }
            }
        }
    }

    /// Calls the agent, unless it is another user's; `completion` receives the reply, on this thread.
    ///
    /// - Parameter activates: whether the bus may start the agent.
    package func callAgent(
        _ call: some ProtocolCall,
        activates: Bool = false,
        then completion: @escaping (BusAnswer) -> Void
    ) {
        findOwner(of: AgentInterface.name, activates: activates) { [self] owner in
            switch owner {
            case .failure(let fault): completion(.failure(fault))
            case .success(let owner):
                checkAgent(owner) { [self] check in
                    if case .failure(let fault) = check { return completion(.failure(fault.ofOwner(owner))) }
                    self.call(
                        owner,
                        path: AgentInterface.path,
                        interface: AgentInterface.name,
                        member: type(of: call).member,
                        call.arguments
                    ) { completion($0.mapError { $0.ofOwner(owner) }) }
                }
            }
        }
    }
}

extension BusFault {
    private static let foreignAgent = "org.notifybus.Error.ForeignAgent"

    fileprivate static func foreignAgent(of user: UInt32) -> BusFault {
        BusFault(name: foreignAgent, message: "it belongs to user \(user), neither to root nor to this user")
    }

    /// Whether the agent is another user's, and was not asked.
    package var saysForeignAgent: Bool { name == BusFault.foreignAgent }
}

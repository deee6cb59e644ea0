// SPDX-License-Identifier: Apache-2.0

/// What a program says to the agent.
extension LifecyclePeer {
    /// Says which state the program is in by its own account.
    func report(
        _ state: NotifyCenter.LifecycleState,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) {
        ask("Report", [.string(state.rawValue)], link) { answer in
            switch answer {
            case .success: completion(.success(()))
            case .failure(.unreachable(let error)): completion(.failure(error))
            case .failure(.refused(let fault)):
                completion(.failure(NotifyBusError(.failed, fault.message, busErrorName: fault.name)))
            }
        }
    }

    /// Calls a method of the agent, once it knows this connection.
    func ask(
        _ member: String,
        _ arguments: [BusValue],
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Result<[BusValue], AgentError>) -> Void
    ) {
        if isRegistering {
            postponed.append { [weak self] link in self?.ask(member, arguments, link, then: completion) }
            postponedFailures.append { completion(.failure(.unreachable($0))) }
            return
        }
        guard let agent else { return completion(.failure(.unreachable(.noAgent))) }
        link.call(
            agent,
            path: AgentNames.agentPath,
            interface: AgentNames.agent,
            member: member,
            arguments
        ) { answer, _ in
            switch answer {
            case .success(let values): completion(.success(values))
            case .failure(let fault): completion(.failure(fault.saysGone ? .unreachable(.noAgent) : .refused(fault)))
            }
        }
    }

    /// Says that the program wants to follow the focus, or no longer. An agent that comes later hears it when it is
    /// registered with.
    func followFocus(_ follows: Bool, _ link: borrowing BusLink) {
        if isRegistering {
            return postponed.append { [weak self] link in self?.followFocus(follows, link) }
        }
        guard let agent else { return }
        link.tell(
            agent,
            path: AgentNames.agentPath,
            interface: AgentNames.agent,
            member: "FollowFocus",
            [.boolean(follows)]
        )
    }

    /// What is observed has changed.
    func namesHaveChanged(names: [String], prefixes: [String], added: Bool, _ link: borrowing BusLink) {
        if isRegistering {
            // The agent may have been told what was observed before.
            postponed.append { [weak self] link in
                self?.namesHaveChanged(names: names, prefixes: prefixes, added: added, link)
            }
            return
        }
        guard let agent else { return }
        link.tell(
            agent,
            path: AgentNames.agentPath,
            interface: AgentNames.agent,
            member: added ? "AddNames" : "RemoveNames",
            [.strings(names), .strings(prefixes)]
        )
    }
}

// SPDX-License-Identifier: Apache-2.0

/// What a program says to the agent.
extension LifecyclePeer {
    /// Says which state the program is in by its own account.
    func report(
        _ state: NotifyCenter.LifecycleState,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) {
        ask(AgentInterface.Report(state: state), link) { answer in
            switch answer {
            case .success: completion(.success(()))
            case .failure(.unreachable(let error)): completion(.failure(error))
            case .failure(.refused(let fault)):
                completion(.failure(NotifyBusError(.failed, fault.message, busErrorName: fault.name)))
            }
        }
    }

    /// Calls a method of the agent, once it knows this connection.
    func ask<Call: ProtocolCall>(
        _ call: Call,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Result<Call.Answer, AgentError>) -> Void
    ) {
        if isRegistering {
            postponed.append { [weak self] link in self?.ask(call, link, then: completion) }
            postponedFailures.append { completion(.failure(.unreachable($0))) }
            return
        }
        guard let agent else { return completion(.failure(.unreachable(.noAgent))) }
        link.call(call, to: agent) { answer, _ in
            completion(answer.mapError { $0.saysGone ? .unreachable(.noAgent) : .refused($0) })
        }
    }

    /// Says that the program wants to follow the desktop, or no longer. An agent that comes later hears it when it is
    /// registered with.
    func followDesktop(_ follows: Bool, _ link: borrowing BusLink) {
        if isRegistering {
            return postponed.append { [weak self] link in self?.followDesktop(follows, link) }
        }
        guard let agent else { return }
        link.tell(AgentInterface.FollowDesktop(follows: follows), to: agent)
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
        if added {
            link.tell(AgentInterface.AddNames(names: names, prefixes: prefixes), to: agent)
        } else {
            link.tell(AgentInterface.RemoveNames(names: names, prefixes: prefixes), to: agent)
        }
    }
}

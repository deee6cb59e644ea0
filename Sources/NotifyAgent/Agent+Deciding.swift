// SPDX-License-Identifier: Apache-2.0

import Logging
import NotifyCore

extension Agent {
    /// What a connection is to be in by all that is known now.
    func decide(_ connection: ManagedConnection) -> Decision {
        let process = connection.process
        var known = Circumstances()
        known.isExempt = configuration.exemptApplications.contains(process.application)
        known.person = connection.person
        known.report = process.report
        if let remembered = connection.remembered, case .source(let name) = remembered.decider, !sources.isSettled(name)
        {
            known.remembered = remembered
        }
        known.follows = configuration.facts.facts(for: process.application, asks: connection.followsDesktop)
        known.sleep = sources.sleep
        known.absence = sources.absence(user: process.user, session: process.session)
        known.focus = sources.focus(pid: process.pid, application: process.application, user: process.user)
        return known.decision
    }

    /// Changes what is no longer as decided. Nobody waits for it.
    func reconsider(_ connections: some Sequence<ManagedConnection>, _ link: borrowing BusLink) {
        let changed = connections.filter { decide($0) != $0.decision }
        guard !changed.isEmpty else { return }
        for connection in changed {
            logger.debug("decided anew", metadata: ["connection": "\(connection.name)"])
        }
        change(changed, nil, on: link)
    }

    /// Tells an observer who has decided its state, to be told so again by it if this agent should die.
    func tellDecider(_ connection: ManagedConnection, _ link: borrowing BusLink) {
        guard connection.toldDecider != connection.decision.decider else { return }
        connection.toldDecider = connection.decision.decider
        link.emit(AgentInterface.Decided(decider: connection.decision.decider.name), to: connection.name)
    }

    // MARK: - Release

    /// Lets what a person has set no longer count.
    func release(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        let text = call.arguments[0].string ?? ""
        let target: Target? = text.isEmpty ? nil : Target(text)
        guard text.isEmpty || target != nil else {
            throw .invalidArguments("A target is 'pid:N', ':1.N', 'app:ID', or empty for everyone.")
        }
        if let target, directory.connections(of: target).isEmpty { throw .noSuchTarget(text) }
        forOthers(call, on: link) { [self] user, link throws(BusFault) in
            try release(call, target, text, user: user, on: link)
        }
    }

    private func release(
        _ call: BusCall,
        _ target: Target?,
        _ text: String,
        user: UInt32,
        on link: borrowing BusLink
    ) throws(BusFault) {
        guard let target else {
            let all = directory.connections.values.filter { Identity.permits(user, over: $0.user) && $0.person != nil }
            directory.forgetWishes(of: user == 0 ? nil : user)
            return release(all, call, by: user, on: link)
        }
        let meant = try connections(of: target, text, permittedTo: user)
        for user in Set(meant.map(\.process.user)) { directory.note(nil, for: target, user: user) }
        release(meant, call, by: user, on: link)
    }

    private func release(
        _ connections: [ManagedConnection],
        _ call: BusCall,
        by user: UInt32,
        on link: borrowing BusLink
    ) {
        for connection in connections { connection.person = nil }
        guard !connections.isEmpty else { return link.reply(to: call, [.uint32(0)]) }
        apply(connections, ChangeRequest(call, by: user, for: connections), on: link)
    }
}

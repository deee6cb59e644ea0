// SPDX-License-Identifier: Apache-2.0

import Logging
import NotifyCore

extension Agent {
    /// How many names go into one Deliver: 2 MB at most.
    private static let deliveryLimit = 4_096

    /// Does what a connection's transition asks for.
    func perform(
        _ actions: [Transition<ChangeRequest>.Action],
        for connection: ManagedConnection,
        _ link: borrowing BusLink
    ) {
        for action in actions {
            switch action {
            case .hold:
                hold(connection.subjects, for: connection, link) { [self] failure, link in
                    go(on: connection, link) { $0.namesAreHeld(failure) }
                }
            case .release:
                release(connection.held, of: connection, link)
            case .mark:
                // Goes with what is told next, so that little lies between the two.
                connection.isToBeMarked = true
            case .tell(let state):
                window.enqueue(connection, state)
                pump(link)
            case .awaitHeldBack:
                link.callBus("GetId", []) { [self] _, link in
                    go(on: connection, link) { $0.nothingIsHeldBack() }
                }
            case .deliver:
                deliver(connection.pending.take(), to: connection, link)
            case .forgetPending:
                connection.pending.removeAll()
            case .announce(let old, let new):
                announce(connection, from: old, to: new, link)
            case .answer(let requests, let outcome):
                let failure: String? = if case .failed(let text) = outcome { text } else { nil }
                for request in requests { note(request, connection, failure, link) }
            }
        }
    }

    private func go(
        on connection: ManagedConnection,
        _ link: borrowing BusLink,
        _ event: (inout Transition<ChangeRequest>) -> [Transition<ChangeRequest>.Action]
    ) {
        guard isCurrent(connection), case .none = connection.parking else { return }
        perform(event(&connection.transition), for: connection, link)
        if connection.transition.isSettled { updateWatch(of: connection.process) }
    }

    func isCurrent(_ connection: ManagedConnection) -> Bool {
        directory[number: connection.number] === connection
    }

    /// Tells those who wait for it their state, as many as the bus allows at once.
    func pump(_ link: borrowing BusLink) {
        while let (connection, state) = window.next(now: MonotonicClock.now) {
            if isCurrent(connection), case .none = connection.parking {
                tell(connection, state, link)
            } else {
                window.hasAnswered(connection)
            }
        }
    }

    private func tell(_ connection: ManagedConnection, _ state: LifecycleState, _ link: borrowing BusLink) {
        if connection.isToBeMarked {
            connection.isToBeMarked = false
            // The answer stands in the stream of posts where the bus has dealt with the question.
            link.callBus("GetId", []) { [self] _, _ in
                if isCurrent(connection) { connection.transition.markIsReached() }
            }
        }
        link.call(
            connection.name,
            path: ObserverInterface.path,
            interface: ObserverInterface.name,
            member: "SetState",
            [.string(state.rawValue)]
        ) { [self] answer, link in
            window.hasAnswered(connection)
            pump(link)
            guard isCurrent(connection) else { return }
            switch answer {
            case .success(let values):
                if let dropped = values.first?.uint64 { connection.dropped = dropped }
                values.closeDescriptors()
                go(on: connection, link) { $0.observerAnswered(nil, isHoldingBack: link.isHoldingPostsBack) }
            case .failure(let fault) where fault.saysGone:
                if case .none = connection.parking { connectionIsGone(connection, link) }
            case .failure(let fault):
                let text = "The observer \(connection.name) answers '\(fault.message)'."
                go(on: connection, link) { $0.observerAnswered(text) }
            }
        }
    }

    func deliver(_ names: [NotifyName], to connection: ManagedConnection, _ link: borrowing BusLink) {
        var rest = names[...]
        while !rest.isEmpty {
            link.tell(
                connection.name,
                path: ObserverInterface.path,
                interface: ObserverInterface.name,
                member: "Deliver",
                [.strings(rest.prefix(Agent.deliveryLimit).map(\.string))]
            )
            rest = rest.dropFirst(Agent.deliveryLimit)
        }
    }

    func announce(
        _ connection: ManagedConnection,
        from old: LifecycleState,
        to new: LifecycleState,
        _ link: borrowing BusLink
    ) {
        connection.since = WallClock.now
        logger.info(
            "\(old) → \(new)",
            metadata: ["connection": "\(connection.name)", "process": "\(connection.process.pid)"]
        )
        link.emit(
            AgentInterface.StateChanged(
                connection: connection.name,
                process: UInt32(connection.process.pid),
                application: connection.process.application,
                from: old.rawValue,
                to: new.rawValue
            )
        )
    }

    // MARK: - Names in the agent's hands

    /// Holds names for a connection, as far as it does not hold them already.
    func hold(
        _ subjects: Subjects,
        for connection: ManagedConnection,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (String?, borrowing BusLink) -> Void
    ) {
        let missing = subjects.subtracting(connection.held)
        let new = holds.add(connection, missing)
        connection.held.formUnion(missing)
        // What is held for others already was asked for on this connection before, and what follows comes after it.
        if new.isEmpty { return completion(nil, link) }
        link.hold(names: Array(new.names), prefixes: Array(new.prefixes)) { [self] error, link in
            guard let error else { return completion(nil, link) }
            _ = holds.remove(connection, missing)
            connection.held = connection.held.subtracting(missing)
            completion(error.description, link)
        }
    }

    func release(_ subjects: Subjects, of connection: ManagedConnection, _ link: borrowing BusLink) {
        let ours = subjects.intersection(connection.held)
        connection.held = connection.held.subtracting(ours)
        let free = holds.remove(connection, ours)
        if !free.isEmpty { link.release(names: Array(free.names), prefixes: Array(free.prefixes)) }
    }
}

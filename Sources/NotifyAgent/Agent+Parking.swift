// SPDX-License-Identifier: Apache-2.0

import Glibc
import Logging
import NotifyCore

extension Agent {
    /// A process stands still, and nobody asked us. Its connections are parked before the bus drowns.
    func processHasStopped(_ number: UInt64, _ link: borrowing BusLink) {
        guard let process = directory.process(number: number), process.stop == nil else { return }
        process.isStopped = true
        sources.note(.stillness(process: process.pid, isStill: true), from: Agent.freezerSource)
        for connection in process.connections.values where connection.mayBeQueuedFor && connection.socket >= 0 {
            park(connection, link)
        }
    }

    /// Takes a connection's names over, and has everything read that the bus has queued for it until then.
    private func park(_ connection: ManagedConnection, _ link: borrowing BusLink) {
        let process = connection.process
        connection.parking = .draining
        connection.stateAfterParking = connection.transition.wish
        logger.notice("parks", metadata: ["connection": "\(connection.name)", "process": "\(process.pid)"])
        hold(connection.subjects, for: connection, link) { [self] failure, link in
            if let failure { logger.error("\(failure)", metadata: ["connection": "\(connection.name)"]) }
            guard isCurrent(connection), case .draining = connection.parking, connection.socket >= 0 else { return }
            watcher.forgetSocket(connection.number)
            // From here on posts set bits; those that came before stand in the stream before the mark.
            settleParked(connection, link)
            link.tell(
                connection.name,
                path: ObserverInterface.path,
                interface: ObserverInterface.name,
                member: "Mark",
                [.uint64(connection.number)]
            )
            let stream = ParkedStream(
                socket: connection.takeSocket(),
                process: process.handle,
                agent: uniqueName,
                mark: connection.number
            )
            watcher.drain(stream, number: connection.number)
        }
    }

    /// Ends what was under way: the connection is in what its process will find.
    private func settleParked(_ connection: ManagedConnection, _ link: borrowing BusLink) {
        let aim = connection.stateAfterParking
        perform(connection.transition.park(returningTo: aim), for: connection, link)
        let state = connection.state
        connection.transition = Transition(state, isHolding: state == .suspended)
        if state == .background {
            release(connection.held, of: connection, link)
            connection.pending.removeAll()
        }
    }

    /// The stream of a parked connection has been read, and its socket is shut down.
    func streamIsRead(_ number: UInt64, _ outcome: ParkedStream.Outcome, _ link: borrowing BusLink) {
        let heir = heirs.removeValue(forKey: number)
        guard let receiver = heir ?? directory[number: number] else { return }
        if heir == nil {
            receiver.parking = .parked
            logger.notice(
                "parked",
                metadata: [
                    "connection": "\(receiver.name)", "messages": "\(outcome.messages)",
                    "mark": "\(outcome.hasMark ? "seen" : "missed")",
                ]
            )
        }
        keep(outcome.names(amongst: receiver.subjects), for: receiver, link)
        for (sender, names) in outcome.owned {
            link.findUser(of: sender) { [self] user, link in
                guard let user = try? user.get(), isCurrent(receiver) else { return }
                let open = names.filter { $0.isOpen(to: user) && receiver.subjects.contains($0) }
                keep(Array(open), for: receiver, link)
            }
        }
    }

    /// Sets bits, or delivers if the observer is listening again.
    private func keep(_ names: [NotifyName], for connection: ManagedConnection, _ link: borrowing BusLink) {
        switch connection.state {
        case .background: break
        case .suspended:
            for name in names where !connection.pending.insert(name) { connection.dropped += 1 }
        case .foreground:
            deliver(names, to: connection, link)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import Logging
import NotifyCore

extension Agent {
    /// A connection ends without having been parked.
    func connectionIsGone(_ connection: ManagedConnection, _ link: borrowing BusLink) {
        guard case .none = connection.parking else { return }
        logger.debug("gone", metadata: ["connection": "\(connection.name)"])
        remove(connection, link)
    }

    /// Forgets a connection, and all that was kept for it.
    func remove(_ connection: ManagedConnection, _ link: borrowing BusLink) {
        if connection.socket >= 0 {
            watcher.forgetSocket(connection.number)
            // The process has ended, or has closed the connection: without this the duplicate would keep it alive.
            shutdown(connection.socket, Int32(SHUT_RDWR))
            connection.closeSocket()
        }
        forgetEnd(of: connection, link)
        directory.remove(connection)
        forgetStates(of: connection.subjects.names)
        release(connection.held, of: connection, link)
        connection.pending.removeAll()
        perform(connection.transition.end(), for: connection, link)
        let process = connection.process
        mayRest()
        if process.connections.isEmpty, !process.isWatched || !process.isWorthRemembering {
            forget(process)
        } else {
            updateWatch(of: process)
        }
    }

    private func forget(_ process: ManagedProcess) {
        watcher.forget(process: process.number)
        directory.remove(process)
        for source in running { source.observerHasGone(process.pid) }
    }

    // MARK: - Processes

    func processHasEnded(_ number: UInt64, _ link: borrowing BusLink) {
        guard let process = directory.process(number: number) else { return }
        process.forgetWishes()
        for connection in process.connections.values {
            if case .draining = connection.parking { watcher.dropDrain(connection.number) }
            heirs[connection.number] = nil
            remove(connection, link)
        }
        forget(process)
    }

    func processContinues(_ number: UInt64, _ link: borrowing BusLink) {
        guard let process = directory.process(number: number) else { return }
        process.isStopped = false
        sources.note(.stillness(process: process.pid, isStill: false), from: Agent.freezerSource)
    }

    /// Has the process looked at as long as the bus may queue posts for it.
    func updateWatch(of process: ManagedProcess) {
        guard directory.process(number: process.number) === process, process.isWatched else { return }
        let mustLook = process.stop == nil && process.connections.values.contains(where: \.mayBeQueuedFor)
        let isAnnounced = process.connections.values.allSatisfy { $0.nameWatch == .none }
        watcher.look(at: process.number, mustLook, isAnnounced: isAnnounced)
        if !mustLook { process.isStopped = false }
    }
}

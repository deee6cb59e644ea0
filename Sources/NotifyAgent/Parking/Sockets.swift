// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// The duplicates of observers' sockets, by which the end of a connection is noticed, and what the bus has queued for a
/// stopped process is read.
final class Sockets {
    private let watcher: Watcher
    private var kept: [ConnectionID: Int32] = [:]
    /// Those of connections that are registering, by unique name.
    private var offered: [String: DescriptorBox] = [:]

    init(watcher: Watcher) { self.watcher = watcher }

    deinit { for socket in kept.values { close(socket) } }

    /// Accepts the socket that a connection provides when it registers.
    func offer(_ socket: DescriptorBox, by name: String) { offered[name] = socket }
    func forgetOffer(by name: String) { offered[name] = nil }

    /// Keeps the socket that a connection has provided, replacing an earlier one.
    ///
    /// - Parameter process: the number of its process.
    /// - Returns: whether its end is noticed.
    func begin(_ id: ConnectionID, _ name: String, of process: UInt64) -> Bool {
        guard let socket = offered.removeValue(forKey: name)?.take(), socket >= 0 else { return false }
        drop(id)
        kept[id] = socket
        return watcher.watch(socket: socket, number: id.number, of: process)
    }

    /// Reads what is queued for a connection, up to a mark that is already in its stream; the watcher reports when that
    /// is done.
    func drain(_ id: ConnectionID, _ process: ProcessHandle, agent: String) -> Bool {
        guard let socket = kept.removeValue(forKey: id) else { return false }
        watcher.forgetSocket(id.number)
        let stream = ParkedStream(socket: socket, process: process, agent: agent, mark: id.number)
        watcher.drain(stream, number: id.number)
        return true
    }

    func stopDraining(_ id: ConnectionID) { watcher.dropDrain(id.number) }

    /// The connection has ended.
    func forget(_ id: ConnectionID) {
        // The process has exited, or has closed the connection: otherwise the duplicate would keep it alive.
        if let socket = kept[id] { shutdown(socket, Int32(SHUT_RDWR)) }
        drop(id)
    }

    private func drop(_ id: ConnectionID) {
        guard let socket = kept.removeValue(forKey: id) else { return }
        watcher.forgetSocket(id.number)
        close(socket)
    }
}

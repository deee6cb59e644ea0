// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// The duplicates of observers' sockets, by which the agent notices the end of a connection, and reads what the bus has
/// queued for a stopped process.
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
    /// - Returns: whether its end is noticed.
    func begin(_ id: ConnectionID, _ name: String, of process: ProcessID) -> Bool {
        guard let socket = offered.removeValue(forKey: name)?.take(), socket >= 0 else { return false }
        drop(id)
        kept[id] = socket
        return watcher.watch(socket, of: id, process)
    }

    /// Reads what is queued for a connection, up to a mark that is already in its stream; the watcher reports when that
    /// is done.
    func drain(_ id: ConnectionID, _ process: ProcessHandle, agent: String) -> ParkedStream? {
        guard let socket = kept.removeValue(forKey: id) else { return nil }
        watcher.forgetSocket(of: id)
        let stream = ParkedStream(socket: socket, process: process, agent: agent, mark: id.number)
        watcher.drain(stream, of: id)
        return stream
    }

    func stopDraining(_ id: ConnectionID) { watcher.dropDrain(of: id) }

    /// The connection has ended.
    func forget(_ id: ConnectionID) {
        // The process has exited, or has closed the connection: otherwise the duplicate would keep it alive.
        if let socket = kept[id] { shutdown(socket, Int32(SHUT_RDWR)) }
        drop(id)
    }

    private func drop(_ id: ConnectionID) {
        guard let socket = kept.removeValue(forKey: id) else { return }
        watcher.forgetSocket(of: id)
        close(socket)
    }
}

/// The owner of the listening socket to which a stream socket was connected. See unix(7).
struct SocketIdentity: Equatable {
    /// Of the process that called listen(2).
    private let credentials: PeerCredentials
    /// The address to which the listener is bound. systemd listens on behalf of many.
    private let address: [UInt8]

    /// - Returns: nil if it is not a connected stream socket of the family AF_UNIX.
    init?(_ descriptor: Int32) {
        guard SocketIdentity.option(SO_DOMAIN, of: descriptor) == AF_UNIX,
            SocketIdentity.option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
        else { return nil }
        guard let credentials = PeerCredentials(of: descriptor) else { return nil }
        self.credentials = credentials
        var name = [UInt8](repeating: 0, count: MemoryLayout<sockaddr_un>.size)
        var size = socklen_t(name.count)
        let isConnected = name.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return getpeername(descriptor, start.assumingMemoryBound(to: sockaddr.self), &size) == 0
        }
        guard isConnected else { return nil }
        address = Array(name.prefix(Int(size)))
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}

/// Who is at the other end of a socket, according to SO_PEERCRED, which can't be forged: the process that has called listen(2)
/// or socketpair(2). See unix(7).
struct PeerCredentials: Equatable {
    let pid: pid_t
    let user: uid_t
    let group: gid_t

    init?(of socket: Int32) {
        // A struct ucred.
        var credentials: (pid: pid_t, user: uid_t, group: gid_t) = (0, 0, 0)
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
        (pid, user, group) = credentials
    }
}

/// Makes the bus report the end of connections whose socket the agent does not have.
final class EndWatch {
    private let link: BusLink
    /// The match rule by which the bus reports it.
    private enum Rule { case own, shared }

    /// Up to this many connections have a rule of their own. A default system bus allows 512 rules, and names need them
    /// too.
    private static let limit = 32

    private var rules: [ConnectionID: Rule] = [:]
    private var own = 0
    private var shared = 0

    init(_ link: BusLink) { self.link = link }

    var isEmpty: Bool { rules.isEmpty }
    func watches(_ id: ConnectionID) -> Bool { rules[id] != nil }

    /// - Parameter completion: called if it is already gone.
    func begin(
        _ id: ConnectionID,
        _ name: String,
        ifGone completion: @escaping () -> Void
    ) {
        guard rules[id] == nil else { return }
        if own < EndWatch.limit {
            rules[id] = .own
            own += 1
            link.callBus("AddMatch", [.string(OwnerChange.rule(of: name))])
        } else {
            rules[id] = .shared
            shared += 1
            if shared == 1 { link.callBus("AddMatch", [.string(OwnerChange.rule(of: nil))]) }
        }
        // It may have gone before the rule was in place.
        link.callBus("NameHasOwner", [.string(name)]) { answer in
            if case .success(let values) = answer, values.first?.boolean == false { completion() }
        }
    }

    func end(_ id: ConnectionID, _ name: String) {
        switch rules.removeValue(forKey: id) {
        case nil: break
        case .own:
            own -= 1
            link.callBus("RemoveMatch", [.string(OwnerChange.rule(of: name))])
        case .shared:
            shared -= 1
            if shared == 0 { link.callBus("RemoveMatch", [.string(OwnerChange.rule(of: nil))]) }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Whose listening socket a connected stream socket was connected to. See unix(7).
struct SocketIdentity: Equatable {
    /// Who called listen(2), as SO_PEERCRED says, which nobody can choose.
    private let pid: pid_t
    private let user: uid_t
    private let group: gid_t
    /// To what address the listener is bound. systemd listens for many.
    private let address: [UInt8]

    /// - Returns: nil if it is no connected stream socket of the family AF_UNIX.
    init?(_ descriptor: Int32) {
        guard SocketIdentity.option(SO_DOMAIN, of: descriptor) == AF_UNIX,
            SocketIdentity.option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
        else { return nil }
        // A struct ucred.
        var credentials: (pid: pid_t, user: uid_t, group: gid_t) = (0, 0, 0)
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
        (pid, user, group) = credentials
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

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The owner of the listening socket to which a stream socket was connected. See unix(7).
struct SocketIdentity: Equatable {
    /// The process that called listen(2), according to SO_PEERCRED, which can't be forged.
    private let pid: pid_t
    private let user: uid_t
    private let group: gid_t
    /// The address to which the listener is bound. systemd listens on behalf of many.
    private let address: [UInt8]

    /// - Returns: nil if it is not a connected stream socket of the family AF_UNIX.
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

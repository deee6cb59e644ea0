// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A socket like the one on which systemd receives its services' reports.
public final class DatagramSocket: Sendable {
    private let descriptor: Int32
    private let address: (sockaddr_un, socklen_t)

    /// Binds it to a path, or to a name in the abstract name space.
    public init(_ path: String, isAbstract: Bool) throws {
        descriptor = DatagramSocket.make()
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = (isAbstract ? [0] : []) + Array(path.utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t((MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2) + bytes.count)
        self.address = (address, length)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard descriptor >= 0, result == 0 else { throw TestSupportError("Cannot bind a socket: error \(errno)") }
    }

    deinit {
        close(descriptor)
    }

    private static func make() -> Int32 {
        socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    /// Sends it messages until it takes no more.
    public func fill() {
        let sender = DatagramSocket.make()
        defer { close(sender) }
        var (address, length) = address
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                while sendto(sender, "x", 1, Int32(MSG_DONTWAIT), $0, length) == 1 {}
            }
        }
    }

    /// The next message; waits at most 120 s.
    public func receive() throws -> String {
        var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&source, 1, 120_000) == 1 else { throw TestSupportError("Nothing came through the socket.") }
        var datagram = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &datagram, datagram.count, 0)
        return String(decoding: datagram[..<max(0, count)], as: UTF8.self)
    }
}

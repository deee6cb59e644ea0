// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport

/// A program that listens at sockets, on threads of its own, and does not answer the first question of a kind.
final class SilentDesktop: Sendable {
    let folder: TemporaryFolder

    /// - Parameter answer: what to send for what has come on a connection; nil for nothing.
    init(_ names: [String], _ answer: @escaping @Sendable (_ name: String, _ question: [UInt8]) -> [UInt8]?) throws {
        folder = try TemporaryFolder()
        for name in names {
            let listener = try UnixListener(folder.path + "/" + name)
            startThread {
                while let socket = listener.accept() {
                    startThread {
                        defer { close(socket) }
                        var bytes = [UInt8](repeating: 0, count: 65_536)
                        while true {
                            let count = recv(socket, &bytes, bytes.count, 0)
                            guard count > 0 else { return }
                            guard let reply = answer(name, Array(bytes[..<count])) else { continue }
                            _ = send(socket, reply, reply.count, Int32(MSG_NOSIGNAL))
                            // Hyprland's ends with the answer.
                            if name == ".socket.sock" { return }
                        }
                    }
                }
            }
        }
    }
}

/// A socket that accepts connections.
final class UnixListener: Sendable {
    private let descriptor: Int32

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let descriptor = descriptor
        let isThere = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        guard isThere, listen(descriptor, 64) == 0 else { throw TestSupportError("Can't listen at \(path).") }
    }

    deinit { close(descriptor) }

    /// - Returns: nil if no client connects for a minute.
    func accept() -> Int32? {
        var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&source, 1, 60_000) == 1 else { return nil }
        let socket = Glibc.accept(descriptor, nil, nil)
        return socket >= 0 ? socket : nil
    }
}

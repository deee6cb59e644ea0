// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A connected Unix socket on which every call has a deadline.
final class UnixStream: Sendable {
    private let descriptor: Int32

    init(path: String) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            guard path.utf8.count < bytes.count else { return false }
            bytes.copyBytes(from: path.utf8)
            return true
        }
        guard fits else { throw TestSupportError("\(path) is too long for a socket.") }
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw TestSupportError("Cannot connect to \(path): \(lastError())") }
    }

    deinit { close(descriptor) }

    /// Writes all of the bytes.
    func send(_ bytes: [UInt8], deadline: Deadline) throws {
        var sent = 0
        while sent < bytes.count {
            try wait(for: POLLOUT, until: deadline)
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
            } else if errno != EAGAIN && errno != EINTR {
                throw TestSupportError("Cannot send: \(lastError())")
            }
        }
    }

    /// Reads at least one byte, or none at the end of the stream.
    func receive(deadline: Deadline) throws -> ArraySlice<UInt8> {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            try wait(for: POLLIN, until: deadline)
            let count = recv(descriptor, &chunk, chunk.count, Int32(MSG_DONTWAIT))
            if count >= 0 { return chunk[..<count] }
            // A bus that throws a client out may reset the connection instead of ending it.
            if errno == ECONNRESET { return [] }
            if errno != EAGAIN && errno != EINTR { throw TestSupportError("Cannot receive: \(lastError())") }
        }
    }

    private func wait(for event: Int32, until deadline: Deadline) throws {
        var source = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        while poll(&source, 1, deadline.remainingMilliseconds) <= 0 {
            guard !deadline.hasPassed else {
                throw TestSupportError("Timed out: the peer \(event == POLLIN ? "says" : "reads") nothing.")
            }
        }
    }
}

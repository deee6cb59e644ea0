// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A connected Unix socket on which every call has a deadline.
public final class UnixStream: Sendable {
    /// The socket.
    public let descriptor: Int32

    /// Connects.
    public init(path: String) throws {
        var address = try socketAddress(path)
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw TestSupportError("Cannot connect to \(path): \(lastError())") }
    }

    /// Takes over a connected socket.
    public init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Writes all bytes, with descriptors attached to the first, which the caller keeps. See unix(7).
    func send(_ bytes: [UInt8], with others: [Int32]) throws {
        var bytes = bytes
        var control = [UInt8](repeating: 0, count: (16 + 4 * others.count + 7) / 8 * 8)
        let sent = bytes.withUnsafeMutableBytes { bytes in
            control.withUnsafeMutableBytes { control in
                // A struct cmsghdr, whose length counts itself, and the descriptors behind it.
                control.storeBytes(of: UInt(16 + 4 * others.count), toByteOffset: 0, as: UInt.self)
                control.storeBytes(of: SOL_SOCKET, toByteOffset: 8, as: Int32.self)
                control.storeBytes(of: Int32(SCM_RIGHTS), toByteOffset: 12, as: Int32.self)
                for (index, other) in others.enumerated() {
                    control.storeBytes(of: other, toByteOffset: 16 + 4 * index, as: Int32.self)
                }
                var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                return withUnsafeMutablePointer(to: &part) { part in
                    var message = msghdr()
                    (message.msg_iov, message.msg_iovlen) = (part, 1)
                    (message.msg_control, message.msg_controllen) = (control.baseAddress, control.count)
                    return sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
                }
            }
        }
        guard sent == bytes.count else { throw TestSupportError("Cannot send a descriptor: \(lastError())") }
    }

    /// Receives a one-byte message with a descriptor.
    func receiveDescriptor(deadline: Deadline) throws -> Int32 {
        try wait(for: POLLIN, until: deadline)
        var byte: UInt8 = 0
        var control = [UInt](repeating: 0, count: 3)
        let descriptor = withUnsafeMutablePointer(to: &byte) { byte in
            control.withUnsafeMutableBytes { control in
                var part = iovec(iov_base: byte, iov_len: 1)
                return withUnsafeMutablePointer(to: &part) { part -> Int32 in
                    var message = msghdr()
                    (message.msg_iov, message.msg_iovlen) = (part, 1)
                    (message.msg_control, message.msg_controllen) = (control.baseAddress, control.count)
                    let count = recvmsg(self.descriptor, &message, Int32(MSG_CMSG_CLOEXEC))
                    guard count == 1, message.msg_controllen >= 20 else { return -1 }
                    return control.load(fromByteOffset: 16, as: Int32.self)
                }
            }
        }
        guard descriptor >= 0 else { throw TestSupportError("No descriptor has come.") }
        return descriptor
    }

    /// Writes all bytes.
    public func send(_ bytes: [UInt8]) throws { try send(bytes, deadline: Deadline(after: .patience)) }

    /// Writes all bytes.
    func send(_ bytes: [UInt8], deadline: Deadline) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
            } else if errno == EAGAIN {
                try wait(for: POLLOUT, until: deadline)
            } else if errno != EINTR {
                throw TestSupportError("Cannot send: \(lastError())")
            }
        }
    }

    /// Reads at least one byte, or none at the end of the stream.
    func receive(deadline: Deadline) throws -> ArraySlice<UInt8> {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &chunk, chunk.count, Int32(MSG_DONTWAIT))
            if count >= 0 { return chunk[..<count] }
            // A bus that disconnects a client may reset the connection instead of closing it.
            if errno == ECONNRESET { return [] }
            if errno == EAGAIN {
                try wait(for: POLLIN, until: deadline)
            } else if errno != EINTR {
                throw TestSupportError("Cannot receive: \(lastError())")
            }
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

// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// The service manager that started this process, if any. See sd_notify(3) for the protocol, which is small and stable.
package enum NotifySocket {
    /// Sends a message such as `READY=1` to `$NOTIFY_SOCKET`.
    ///
    /// - Parameter descriptors: sent along; then it does not wait for room.
    /// - Returns: what went wrong; nil also if the variable is not set.
    package static func tell(_ message: String, _ descriptors: [Int32] = [], within limit: Duration? = nil) -> String? {
        guard let socket = getenv("NOTIFY_SOCKET"), socket.pointee != 0 else { return nil }
        return send(message, descriptors, to: Argument(socket), within: limit)
    }

    private static func send(
        _ message: String,
        _ descriptors: [Int32],
        to path: Argument,
        within limit: Duration?
    ) -> String? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = path.bytes
        guard name[0] == UInt8(ascii: "/") || name[0] == UInt8(ascii: "@") else {
            return "\(path.quoted) is neither a path nor an abstract socket"
        }
        let isTooLong = withUnsafeMutableBytes(of: &address.sun_path) { space in
            guard name.count < space.count else { return true }
            space.copyMemory(from: name)
            // '@' represents the NUL with which an abstract name begins.
            if space[0] == UInt8(ascii: "@") { space[0] = 0 }
            return false
        }
        if isTooLong { return "\(path.quoted) is too long" }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return describe(errno: errno) }
        defer { close(descriptor) }
        let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        let length = socklen_t(offset + name.count + (name[0] == UInt8(ascii: "/") ? 1 : 0))
        // Only if it is connected poll(2) reports whether there is room in the queue of its reader.
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, length) }
        }
        guard status == 0 else { return describe(errno: errno) }
        if !descriptors.isEmpty {
            let sent = Array(message.utf8).withUnsafeBytes { bytes in
                bytes.baseAddress.map { linux_send(descriptor, $0, bytes.count, descriptors, Int32(descriptors.count)) }
                    ?? -1
            }
            return sent < 0 ? describe(errno: errno) : nil
        }
        return switch StandardStreams.write(message, to: descriptor, within: limit) {
        case .written: nil
        case .gaveUp: "it is not being read"
        case .readerGone: describe(errno: EPIPE)
        case .failed(let number): describe(errno: number)
        }
    }
}

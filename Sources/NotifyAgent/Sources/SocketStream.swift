// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// A conversation with a program of the session, by a socket in the file system. It lives on a loop, where it does not
/// block, and ends with this value.
final class SocketStream {
    private let loop: EventLoop
    private var socket: Int32

    /// Connects.
    ///
    /// - Parameter hear: called with what has come; with nothing, again and again, when the other side has gone.
    /// - Returns: nil if nobody listens there, with the reason in `errno`.
    init?(_ path: String, on loop: EventLoop, _ hear: @escaping ([UInt8]) -> Void) {
        self.loop = loop
        socket = linux_connect_unix(path)
        guard socket >= 0 else { return nil }
        loop.watch(socket) { [socket] in
            if let bytes = SocketStream.receive(from: socket) { hear(bytes) }
        }
    }

    deinit {
        guard socket >= 0 else { return }
        loop.forget(socket)
        close(socket)
    }

    /// What is sent is short enough for the socket, or its other end does not read.
    ///
    /// - Returns: whether it could be sent.
    func send(_ bytes: [UInt8]) -> Bool { linux_send(socket, bytes, bytes.count, nil, 0) == bytes.count }

    /// - Returns: nil if there is nothing yet.
    private static func receive(from socket: Int32) -> [UInt8]? {
        var (count, code): (Int, Int32) = (0, 0)
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initialized in
            count = recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count < 0 { code = errno }
            initialized = max(0, count)
        }
        return code == EAGAIN || code == EINTR ? nil : bytes
    }
}

/// Splits a stream into lines.
package struct LineSplitter {
    /// A window list of thousands of windows has a few megabytes.
    private static let maximum = 16_777_216

    private var rest: [UInt8] = []

    package init() {}

    /// - Returns: the lines that are complete; nil if one is too long.
    package mutating func take(_ bytes: [UInt8]) -> [[UInt8]]? {
        guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else {
            rest += bytes
            return rest.count <= LineSplitter.maximum ? [] : nil
        }
        defer { rest = Array(bytes[(end + 1)...]) }
        return (rest + bytes[..<end]).split(separator: UInt8(ascii: "\n")).map { Array($0) }
    }
}

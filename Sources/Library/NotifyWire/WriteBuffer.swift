// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Bytes being written to a socket that accepts as many as it has room for.
package struct WriteBuffer {
    package enum Outcome { case progress, full, failed }

    /// How much memory is kept for later.
    private static let usualCapacity = 65_536

    private var bytes: [UInt8] = []
    private var head = 0

    package init() {}

    package var count: Int { bytes.count - head }
    package var isEmpty: Bool { head == bytes.count }

    package mutating func append(_ more: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: more)
    }

    package mutating func write(to descriptor: Int32) -> Outcome {
        let written = bytes.withUnsafeBytes { bytes in
            sendWithoutWaiting(UnsafeRawBufferPointer(rebasing: bytes[head...]), to: descriptor)
        }
        guard let written else { return .failed }
        head += written
        if isEmpty {
            bytes.removeAll(keepingCapacity: bytes.capacity <= WriteBuffer.usualCapacity)
            head = 0
        }
        return written == 0 ? .full : .progress
    }
}

/// Writes to a socket without waiting and without SIGPIPE. See send(2).
///
/// - Returns: how many bytes the socket accepted, 0 if it is full; nil if the connection is lost.
package func sendWithoutWaiting(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int? {
    while true {
        let flags = Int32(MSG_NOSIGNAL | MSG_DONTWAIT)
        let count = send(descriptor, bytes.baseAddress, bytes.count, flags)
        if count >= 0 { return count }
        switch errno {
        case EINTR: continue
        case EAGAIN, ENOBUFS: return 0
        default: return nil
        }
    }
}

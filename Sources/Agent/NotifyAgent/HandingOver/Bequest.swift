// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// What an agent leaves to the next one: what it knows, in a file in memory, and its connection to the bus, for which the
/// bus goes on queueing posts until the next agent hears them itself.
///
/// Its owner closes both.
package struct Bequest: Sendable {
    package var heritage: Int32
    package var socket: Int32

    package init(heritage: Int32, socket: Int32) { (self.heritage, self.socket) = (heritage, socket) }

    /// Finds out which of two descriptors is which.
    ///
    /// - Returns: nil if they are something else; then they are closed.
    package init?(_ descriptors: [Int32]) {
        let sockets = descriptors.filter(Bequest.isSocket)
        guard descriptors.count == 2, sockets.count == 1, let socket = sockets.first,
            let file = descriptors.first(where: { $0 != socket })
        else {
            for descriptor in descriptors { Glibc.close(descriptor) }
            return nil
        }
        self.init(heritage: file, socket: socket)
    }

    private static func isSocket(_ descriptor: Int32) -> Bool {
        var facts = stat()
        return fstat(descriptor, &facts) == 0 && facts.st_mode & S_IFMT == S_IFSOCK
    }

    /// Closes both, without ending the connection for processes that have duplicates.
    package func close() {
        Glibc.close(heritage)
        Glibc.close(socket)
    }

    /// Ends the connection, and closes both.
    func end() {
        shutdown(socket, Int32(SHUT_RDWR))
        close()
    }
}

/// What an agent has left, to be taken once.
final class BequestBox {
    private var content: Bequest?

    init(_ bequest: Bequest) { content = bequest }

    deinit { content?.close() }

    func take() -> Bequest? {
        defer { content = nil }
        return content
    }
}

/// Files that exist only in memory.
enum MemoryFile {
    /// More is not read.
    private static let limit = 1 << 28

    /// - Returns: a descriptor; -1 if there is no room.
    static func make(_ bytes: [UInt8]) -> Int32 {
        let file = linux_memfd("notify-agent")
        guard file >= 0 else { return -1 }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(file, $0.baseAddress.map { $0 + written }, $0.count - written, off_t(written))
            }
            guard count > 0 else {
                close(file)
                return -1
            }
            written += count
        }
        return file
    }

    /// - Returns: nil if it can't be read, or is too large.
    static func read(_ file: Int32) -> [UInt8]? {
        var facts = stat()
        // Reading another kind of file could wait forever.
        guard fstat(file, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG, facts.st_size >= 0, facts.st_size <= limit
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(facts.st_size))
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                pread(file, $0.baseAddress.map { $0 + done }, $0.count - done, off_t(done))
            }
            guard count > 0 else { return nil }
            done += count
        }
        return bytes
    }
}

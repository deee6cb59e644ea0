// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A pipe whose writable end another process gets.
public final class Pipe {
    /// Negative once it is closed.
    public private(set) var readEnd: Int32
    /// Negative once it is closed.
    public private(set) var writeEnd: Int32

    /// Both ends are closed in programs that are run.
    public init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw TestSupportError("Cannot make a pipe: error \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        closeWriteEnd()
        closeReadEnd()
    }

    /// Writers get an error from now on.
    public func closeReadEnd() {
        if readEnd >= 0 { close(readEnd) }
        readEnd = -1
    }

    /// The reader gets the end once no other process has it open.
    public func closeWriteEnd() {
        if writeEnd >= 0 { close(writeEnd) }
        writeEnd = -1
    }

    /// Writes until it takes no more.
    public func fill() {
        let flags = fcntl(writeEnd, F_GETFL)
        _ = fcntl(writeEnd, F_SETFL, flags | O_NONBLOCK)
        let page = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
        while write(writeEnd, page, page.count) > 0 {}
        _ = fcntl(writeEnd, F_SETFL, flags)
    }

    /// What one read gets; empty at the end.
    public func read(timeout: Duration = .patience) throws -> String {
        var source = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        guard poll(&source, 1, Int32(timeout.components.seconds * 1000)) == 1 else {
            throw TestSupportError("Nothing came through the pipe within \(timeout)")
        }
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(readEnd, &chunk, chunk.count)
        return String(decoding: chunk[..<max(0, count)], as: UTF8.self)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A file in /proc for which poll(2) reports changes.
final class KernelFile {
    private let loop: EventLoop
    private let descriptor: Int32

    /// - Parameter changed: is called when poll(2) reports `POLLPRI` or an error.
    init(_ path: String, _ mode: Int32 = O_RDONLY, on loop: EventLoop) throws(SourceFault) {
        self.loop = loop
        descriptor = open(path, mode | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0 { throw .system(path) }
    }

    deinit {
        loop.forget(descriptor)
        close(descriptor)
    }

    func follow(_ changed: @escaping () -> Void) { loop.watch(descriptor, Int32(POLLPRI), changed) }

    /// Writes what to watch for.
    func write(_ text: String) throws(SourceFault) {
        // The kernel wants the NUL along.
        let count = text.withCString { Glibc.write(descriptor, $0, strlen($0) + 1) }
        if count < 0 { throw .system("the kernel refused '\(text)'") }
    }

    /// The whole file; nil if it can't be read.
    func contents() -> [UInt8]? {
        guard lseek(descriptor, 0, SEEK_SET) == 0 else { return nil }
        var bytes: [UInt8] = []
        while bytes.count < 16 << 20 {
            var count = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, size in
                count = read(descriptor, buffer.baseAddress, buffer.count)
                size = max(0, count)
            }
            if count < 0, errno == EINTR { continue }
            if count < 0 { return nil }
            if count == 0 { break }
            bytes += chunk
        }
        return bytes
    }
}

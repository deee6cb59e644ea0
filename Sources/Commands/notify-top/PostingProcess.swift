// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The process that posted, as far as the bus knows. Between the bus's reply and our look at the process, it may have
/// exited and its number been reused: this is for display, and decides nothing.
struct PostingProcess: Sendable {
    let process: UInt32
    /// The program's name from the kernel, up to 15 bytes; nil if the process had exited.
    let program: String?

    init(process: UInt32) {
        self.process = process
        let file = open("/proc/\(process)/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            program = nil
            return
        }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(file, &bytes, bytes.count)
        // It ends with a newline.
        program = count > 1 ? String(decoding: bytes[..<(count - 1)], as: UTF8.self) : nil
    }
}

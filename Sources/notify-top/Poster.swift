// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Who posts, as far as the bus tells. Between its answer and the look at the process that may have ended, and its number
/// be another's: this is for people to read, and decides nothing.
struct Poster: Sendable {
    let process: UInt32
    /// The name of the program as the kernel has it, up to 15 bytes; nil if the process had ended.
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

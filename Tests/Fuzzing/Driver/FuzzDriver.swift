// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Ends the process, so that the fuzzer saves the input.
package func fail(_ reason: String) -> Never {
    let line = Array("\(reason)\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
    abort()
}

/// Tries the files that the command line names, which the fuzzer has written.
package func replay(_ attempt: (UnsafeRawBufferPointer) -> Void) {
    for path in CommandLine.arguments.dropFirst() {
        guard let file = fopen(path, "r") else { fail("cannot open \(path)") }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        fclose(file)
        bytes[..<count].withUnsafeBytes(attempt)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Prints a line immediately, even to a pipe.
func say(_ text: String) {
    let line = Array("\(text)\n".utf8)
    _ = line.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}

/// Ends the program.
func finish() {
    exit(0)
}

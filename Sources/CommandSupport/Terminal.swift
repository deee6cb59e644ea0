// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Standard output, if it is a terminal.
package enum Terminal {
    /// The number of columns and lines; nil if it is not a terminal. A terminal that does not say has 80 and 24.
    package static var size: (columns: Int, lines: Int)? {
        guard StandardStreams.outputIsTerminal else { return nil }
        var size = winsize()
        // TIOCGWINSZ of <asm/ioctls.h>.
        guard ioctl(STDOUT_FILENO, 0x5413, &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Whether to use colours: on a terminal that supports them, unless `NO_COLOR` is set; see https://no-color.org.
    package static let hasColors: Bool = {
        func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
        return StandardStreams.outputIsTerminal && variable("NO_COLOR").isEmpty
            && !["", "dumb"].contains(variable("TERM"))
    }()
}

// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// What tests rely on when they run commands.
@Suite struct RunningCommandTests {
    @Test func `a script in which bash misses a command fails its test, whatever the script makes of it`() throws {
        let script = try start("/bin/bash", ["-c", "no-such-command || true"])
        #expect {
            try script.wait()
        } throws: { error in
            "\(error)".contains("no-such-command: command not found")
        }
    }
}

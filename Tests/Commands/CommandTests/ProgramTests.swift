// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// All commands are one program.
@Suite struct ProgramTests {
    static let commands = [
        "notify-post", "notify-wait", "notify-state", "notify-lifecycle", "notify-top", "notify-agent",
    ]

    private func version(_ line: String, _ arguments: String...) throws -> String {
        let result = try run("bash", ["-c", line, "bash"] + arguments)
        return result.output.isEmpty ? result.errorOutput : String(result.output.prefix { $0 != "(" })
    }

    @Test("Each name is its own command", arguments: commands)
    func names(command: String) throws {
        #expect(try version("exec \"$1\" --version", productPath(command)) == command + " ")
    }

    @Test("What a program calls a command does not make it another one")
    func strangeName() throws {
        #expect(try version("exec -a 'my waiter' \"$1\" --version", productPath("notify-wait")) == "notify-wait ")
        #expect(try version("exec -a /x/notify-post \"$1\" --version", productPath("notify-wait")) == "notify-post ")
    }

    @Test("Where there are no links, the first argument names the command")
    func firstArgument() throws {
        let program = try productPath("notify-commands")
        #expect(try version("exec \"$1\" notify-state --version", program) == "notify-state ")
        for line in ["exec \"$1\"", "exec \"$1\" --version", "exec \"$1\" notify-nothing"] {
            let result = try run("bash", ["-c", line, "bash", program])
            #expect(result.status == 64)
            #expect(result.errorOutput.hasPrefix("notify-commands: name a command: notify-post, "))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// The manual pages and completions, as `make build` makes them, of the commands under test.
enum Manuals {
    private static let folder = Result {
        let commands = try commandFolder()
        let made = try run("\(packageFolder)/Scripts/build/manuals", [commands, "\(commands)/manuals"])
        guard made.status == 0, made.errorOutput.isEmpty else {
            throw TestSupportError("Scripts/build/manuals ended with \(made.status): \(made.errorOutput)")
        }
        return "\(commands)/manuals"
    }

    /// The path of one of the files, such as `man/notify-wait.1`.
    static func path(_ file: String) throws -> String {
        try folder.get() + "/" + file
    }

    /// The contents of one of the files.
    static func text(_ file: String) throws -> String {
        try readFile(path(file))
    }
}

/// The folder of the commands under test.
func commandFolder() throws -> String {
    String(try productPath("notify-wait").dropLast("/notify-wait".count))
}

/// An environment in which a program finds the commands by name, and they find the bus at this address.
func environment(bus: String) throws -> [String: String?] {
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    return ["PATH": "\(try commandFolder()):\(path)", "DBUS_SESSION_BUS_ADDRESS": bus]
}

extension PrivateBus {
    /// Runs a bash script that finds the commands by name; they find this bus.
    func script(
        _ text: String,
        _ arguments: [String] = [],
        _ variables: [String: String?] = [:],
        input: String? = nil
    ) throws -> CommandResult {
        try run(
            "bash",
            ["-c", text, "bash"] + arguments,
            environment: environment(bus: address).merging(variables) { $1 },
            input: input,
            timeout: .patience
        )
    }
}

/// Runs the program of a systemd service that checks how full file systems are, with one that is nearly full and one
/// that is not. It must post this name only for the first.
func checkService(_ lines: [String], posts name: String) throws {
    let text = lines.joined(separator: "\n").replacing("\\\n", with: " ")
    let command = try #require(text.split(separator: "\n").first { $0.hasPrefix("ExecStart=") }).dropFirst(10)
    let script = """
        cd "$(mktemp -d)" && trap 'rm -rf "$PWD"' EXIT
        for used in 97 12; do
            ((used == 97)) && count=2 || count=1
            printf '#!/bin/sh\\nprintf "Use%%%%\\\\n %s%%%%\\\\n"\\n' $used >df; chmod +x df
            export PATH=$PWD:$PATH
            notify-wait -n $count -t 120 'com.*' --then "$1; notify-post com.example.end"
        done
        """
    // In a unit a percent sign is doubled.
    let result = try PrivateBus(.daemon).script(script, [String(command).replacing("%%", with: "%")])
    #expect(result.lines.starts(with: [name, "com.example.end", "com.example.end"]), "\(result.errorOutput)")
}

/// Checks that the agent accepts these settings.
func checkSettings(_ lines: [String]) throws {
    let script = """
        cd "$(mktemp -d)" && trap 'rm -rf "$PWD"' EXIT
        cat >agent.conf; notify-agent --config agent.conf & until notify-lifecycle status; do :; done; kill %1
        """
    let result = try PrivateBus(.daemon).script(script, input: lines.joined(separator: "\n") + "\n")
    #expect(result.output.contains("version:"), "\(result.errorOutput)")
}

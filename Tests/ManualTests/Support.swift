// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// What `make build` makes of the pages in `man/` and of the commands, made once more beside the commands under test.
enum Manuals {
    private static let folder = Result {
        let commands = try commandFolder()
        let made = try run("\(packageFolder)/Scripts/manuals", [commands, "\(commands)/manuals"])
        guard made.status == 0, made.errorOutput.isEmpty else {
            throw TestSupportError("Scripts/manuals ended with \(made.status): \(made.errorOutput)")
        }
        return "\(commands)/manuals"
    }

    /// The path of one of the files, as `man/notify-wait.1`.
    static func path(_ file: String) throws -> String {
        try folder.get() + "/" + file
    }

    /// The whole of one of the files.
    static func text(_ file: String) throws -> String {
        try run("cat", [path(file)]).output
    }
}

/// The folder that Package.swift stands in.
let packageFolder = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 }

/// Whether `PATH` leads to this program; a test of it is left out where it does not.
func isInstalled(_ program: String) -> Bool {
    (try? run("sh", ["-c", "command -v \(program)"]).status) == 0
}

/// The folder of the commands under test.
func commandFolder() throws -> String {
    String(try productPath("notify-wait").dropLast("/notify-wait".count))
}

/// What lets a program find the commands by their names, and them the bus at this address.
func environment(bus: String) throws -> [String: String?] {
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    return ["PATH": "\(try commandFolder()):\(path)", "DBUS_SESSION_BUS_ADDRESS": bus]
}

extension PrivateBus {
    /// Runs a bash script, which finds the commands by their names and they this bus.
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

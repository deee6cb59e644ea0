// SPDX-License-Identifier: Apache-2.0

import CLinux
import CommandSupport
import Glibc
import notify_agent
import notify_lifecycle
import notify_post
import notify_state
import notify_top
import notify_wait

/// All commands are one program, because most of it is the Swift library, which each of them would have to include. It is
/// installed once, with a link for each command.
enum Commands {
    /// Runs the command that this process was started as.
    ///
    /// - Parameter vector: the arguments of main(), ending with NULL. They outlive the process's threads.
    static func run(_ vector: UnsafePointer<UnsafeMutablePointer<CChar>?>) -> ExitCode {
        var arguments = Argument.list(vector)
        let name = arguments.isEmpty ? nil : arguments.removeFirst()
        // A caller may choose any name, but the kernel knows the file, even if it is a link. A build has no links.
        var chosen = name.flatMap { program($0.start) } ?? linux_program().flatMap { program($0) }
        if chosen == nil, let first = arguments.first {
            chosen = program(first.start)
            arguments.removeFirst()
        }
        if let chosen { return chosen.run(arguments) }
        Diagnostics(command: "notify-commands").error(
            "name a command: notify-post, notify-wait, notify-state, notify-lifecycle, notify-top or notify-agent"
        )
        return .usage
    }

    /// - Parameter path: the last part is the name of the command.
    private static func program(_ path: UnsafePointer<CChar>) -> Program? {
        let name = strrchr(path, Int32(UInt8(ascii: "/"))).map { Argument($0 + 1) } ?? Argument(path)
        if name == "notify-post" { return .notifyPost }
        if name == "notify-wait" { return .notifyWait }
        if name == "notify-state" { return .notifyState }
        if name == "notify-lifecycle" { return .notifyLifecycle }
        if name == "notify-top" { return .notifyTop }
        if name == "notify-agent" { return .notifyAgent }
        return nil
    }
}

/// What main() calls, in notify-commands.
@_cdecl("notify_commands") func runCommand(_ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    StandardStreams.prepare()
    return Commands.run(arguments).rawValue
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Command {
    /// Handles `--generate WHAT`, if that is the whole command line: writes part of the manual page or a completion to
    /// standard output. Scripts/build/manuals uses it; the help does not mention it.
    ///
    /// The built command knows best what it accepts. This adds 60 kB to its file, and nothing to its start-up time.
    ///
    /// - Returns: nil if nothing of the kind was requested.
    package static func generate(_ arguments: [Argument], for command: @autoclosure () -> Command) -> ExitCode? {
        guard arguments.count == 2, arguments[0] == "--generate" else { return nil }
        let command = command()
        let description = CommandDescription(command)
        let manual = ManualSections(description)
        let text: String
        switch arguments[1].string {
        case "synopsis": text = manual.synopsis
        case "commands": text = manual.commands
        case "options": text = manual.options
        case "exit-status": text = manual.exitStatus
        case "events": text = manual.events
        case "keys.h": text = ManualSections.keysHeader
        case "no-events": text = manual.unpostedEvents
        case "bash": text = BashCompletion(description).text
        case "zsh": text = ZshCompletion(description).text
        case "fish": text = FishCompletion(description).text
        default: return nil
        }
        return command.print(text)
    }
}

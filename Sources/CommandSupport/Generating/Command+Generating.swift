// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Command {
    /// Answers `--generate WHAT`, if that is the whole command line: writes a part of the manual page or a completion
    /// to standard output. Scripts/manuals asks for them; the help does not mention it.
    ///
    /// A command that is built says best what it takes. This costs 60 kB of its file, and its start nothing.
    ///
    /// - Returns: nil if nothing of the kind was asked for.
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
        case "keys.swift": text = ManualSections.keysSource
        case "no-events": text = manual.unpostedEvents
        case "bash": text = BashCompletion(description).text
        case "zsh": text = ZshCompletion(description).text
        case "fish": text = FishCompletion(description).text
        default: return nil
        }
        return command.print(text)
    }
}

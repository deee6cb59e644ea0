// SPDX-License-Identifier: Apache-2.0

/// A completion for fish.
struct FishCompletion {
    private let command: CommandDescription

    init(_ command: CommandDescription) {
        self.command = command
    }

    var text: String {
        """
        # Completes \(command.name) in fish. It makes this itself: \(command.name) --generate fish

        \(targetFunction)complete -c \(command.name) -f
        \(command.options.map(line).joined())\(operands)\(commandToRun)
        """
    }

    private func line(_ option: CommandDescription.OptionDescription) -> String {
        var line = "complete -c \(command.name)"
        if let short = option.short { line += " -s " + String(short) }
        line += " -l " + option.long
        if option.valueName != nil {
            switch option.value {
            case .unknown: line += " -x"
            case .file: line += " -r -F"
            case .command: line += " -x -a '(__fish_complete_command)'"
            case .choice(let choices): line += " -x -a '" + choices.joined(separator: " ") + "'"
            }
        }
        return line + " -d " + quoted(option.headline) + "\n"
    }

    private var operands: String {
        var text = ""
        if !command.knownNames.isEmpty {
            text += "complete -c \(command.name) -n 'not contains -- -- (commandline -opc)' -a "
            text += quoted(command.knownNames.joined(separator: " ")) + "\n"
        }
        if command.subcommands.isEmpty { return text }
        let names = command.subcommands.map(\.name).joined(separator: " ")
        for (name, meaning) in command.subcommands {
            text += "complete -c \(command.name) -n 'not __fish_seen_subcommand_from \(names)' -a \(name) -d "
            text += quoted(meaning.hasSuffix(".") ? String(meaning.dropLast()) : meaning) + "\n"
        }
        guard case .targets(let verbs) = command.operands else { return text }
        return text + "complete -c \(command.name) -n '__fish_seen_subcommand_from \(verbs.joined(separator: " "))'"
            + " -a '(_\(command.function)_targets)'\n"
    }

    private var targetFunction: String {
        guard case .targets = command.operands else { return "" }
        return """
            # The programs on the bus that the words name, if the agent answers at once.
            function _\(command.function)_targets
                set -l bus
                set -l takes_next no
                for word in (commandline -opc)
                    if test $takes_next = yes
                        set -a bus $word
                        set takes_next no
                    else if string match -qr -- '^--(session|system|address=.*)$' $word
                        set -a bus $word
                    else if test "$word" = --address
                        set -a bus $word
                        set takes_next yes
                    end
                end
                \(TargetListing.pipeline("$bus"))
            end


            """
    }

    /// Whatever follows `--` belongs to another command.
    private var commandToRun: String {
        guard command.runsCommand else { return "" }
        let condition = "contains -- -- (commandline -opc)"
        return "complete -c \(command.name) -n '\(condition)' -x -a"
            + " '(__fish_complete_subcommand --fcs-skip=(contains -i -- -- (commandline -opc)))'\n"
    }

    private func quoted(_ text: String) -> String {
        "'" + text.map { "'\\".contains($0) ? "\\\($0)" : String($0) }.joined() + "'"
    }
}

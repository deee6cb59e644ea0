// SPDX-License-Identifier: Apache-2.0

/// A completion for bash that needs only bash.
struct BashCompletion {
    private let command: CommandDescription

    init(_ command: CommandDescription) {
        self.command = command
    }

    var text: String {
        """
        # shellcheck shell=bash
        # Completes \(command.name) in bash. It makes this itself: \(command.name) --generate bash

        \(targetFunction)\(command.function)() {
            COMPREPLY=()
            local offered='' prefix='' word rest=$COMP_LINE trimmed
            # Bash cuts words at : and = too. Here they are as they were written.
            local -a words=()
            for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
                trimmed=${rest#"${rest%%[![:blank:]]*}"}
                if [[ ${#words[@]} == 0 || $trimmed != "$rest" ]]; then
                    words+=("$word")
                else
                    words[${#words[@]} - 1]+=$word
                fi
                rest=${trimmed#"$word"}
            done
            local current=${words[${#words[@]} - 1]} option=''
            ((${#words[@]} < 2)) || option=${words[${#words[@]} - 2]}
        \(commandToRun)    local value=$current
            if [[ $current == --*=* ]]; then
                option=${current%%=*} value=${current#*=}
                # Where bash cuts words at =, what stands before it stays as it is.
                [[ $COMP_WORDBREAKS == *=* ]] || prefix=$option=
            fi
            case $option in
        \(valueArms)    *)
                prefix=''
                if [[ $current == -* ]]; then
                    offered='\(command.options.flatMap(\.spellings).joined(separator: " "))'
        \(operands)        fi
                ;;
            esac
            local cut=''
            if [[ $COMP_WORDBREAKS == *:* && $value == *:* ]]; then cut=${value%"${value##*:}"}; fi
            for word in $offered; do
                if [[ $word == "$value"* ]]; then COMPREPLY+=("$prefix${word#"$cut"}"); fi
            done
        }
        complete -F \(command.function) \(command.name)

        """
    }

    /// One branch of `case` for each kind of value.
    private var valueArms: String {
        var arms = ""
        var unknown: [String] = []
        for option in command.options where option.valueName != nil {
            let pattern = option.spellings.joined(separator: " | ")
            switch option.value {
            case .unknown:
                unknown.append(pattern)
            case .choice(let choices):
                arms += "    \(pattern)) offered='\(choices.joined(separator: " "))' ;;\n"
            case .file:
                arms += "    \(pattern))\n" + reply("compgen -f", isFile: true) + "        return\n        ;;\n"
            case .command:
                arms += "    \(pattern))\n" + reply("compgen -c") + "        return\n        ;;\n"
            }
        }
        if !unknown.isEmpty { arms += "    \(unknown.joined(separator: " | "))) return ;;\n" }
        return arms
    }

    private func reply(_ compgen: String, isFile: Bool = false) -> String {
        (isFile ? "        compopt -o filenames 2>/dev/null\n" : "")
            + "        mapfile -t COMPREPLY < <(\(compgen) -P \"$prefix\" -- \"$value\")\n"
    }

    private var operands: String {
        guard case .targets(let verbs) = command.operands else {
            // The first word may choose what is done; of the others some may be known.
            let (verbs, names) = (command.subcommands.map(\.name), command.knownNames)
            let first =
                verbs.isEmpty
                ? ""
                : """
                        elif ((${#words[@]} == 2)); then
                            offered='\((verbs + names).joined(separator: " "))'

                """
            let others =
                names.isEmpty
                ? ""
                : """
                        else
                            offered='\(names.joined(separator: " "))'

                """
            return first + others
        }
        return """
                    else
                        local verb='' i
                        for ((i = 1; i < ${#words[@]} - 1; i++)); do
                            case ${words[i]} in
                            \(command.options.filter { $0.valueName != nil }.flatMap(\.spellings).joined(separator: " | "))) ((i++)) ;;
                            -*) ;;
                            *) verb=${words[i]} && break ;;
                            esac
                        done
                        case $verb in
                        '') offered='\(command.subcommands.map(\.name).joined(separator: " "))' ;;
                        \(verbs.joined(separator: " | "))) offered=$(\(command.function)_targets "${words[@]}") ;;
                        esac

            """
    }

    private var targetFunction: String {
        guard case .targets = command.operands else { return "" }
        return """
            # The programs on the bus that the words name, if the agent answers at once.
            \(command.function)_targets() {
                local -a bus=()
                while [[ $# -gt 0 ]]; do
                    case $1 in
                    --session | --system | --address=*) bus+=("$1") ;;
                    --address) bus+=("$1" "${2-}") ;;
                    esac
                    shift
                done
                \(TargetListing.pipeline("\"${bus[@]}\""))
            }


            """
    }

    /// Whatever follows `--` belongs to another command.
    private var commandToRun: String {
        guard command.runsCommand else { return "" }
        return """
                local i
                for ((i = 1; i < COMP_CWORD; i++)); do
                    [[ ${COMP_WORDS[i]} == -- ]] || continue
                    if declare -F _comp_command_offset >/dev/null; then
                        _comp_command_offset $((i + 1))
                    elif declare -F _command_offset >/dev/null; then
                        _command_offset $((i + 1))
                    elif ((i + 1 == COMP_CWORD)); then
                        mapfile -t COMPREPLY < <(compgen -c -- "$current")
                    else
                        compopt -o filenames 2>/dev/null
                        mapfile -t COMPREPLY < <(compgen -f -- "$current")
                    fi
                    return
                done

            """
    }
}

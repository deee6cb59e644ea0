// SPDX-License-Identifier: Apache-2.0

/// A completion for zsh, to be loaded as a function from `$fpath`.
struct ZshCompletion {
    private let command: CommandDescription

    init(_ command: CommandDescription) {
        self.command = command
    }

    var text: String {
        var specs = command.options.map(spec)
        switch command.operands {
        case .none: break
        case .names, .observedNames:
            if !command.subcommands.isEmpty { specs.append(verbs) }
            let names = command.knownNames.map { $0.split(separator: ":").joined(separator: "\\:") }
            specs.append(names.isEmpty ? "'*:NAME: '" : "'*:NAME:(\(names.joined(separator: " ")))'")
        case .targets:
            specs.append(verbs)
            specs.append("'*:TARGET:\(command.function)_targets'")
        }
        return """
            #compdef \(command.name)
            # Completes \(command.name) in zsh. It makes this itself: \(command.name) --generate zsh

            \(targetFunction)\(command.function)() {
            \(commandToRun)    _arguments -s -S : \\
                    \(specs.joined(separator: " \\\n        "))
            }

            \(command.function) "$@"

            """
    }

    /// `'(-n --count)'{-n+,--count=}'[After N notifications]:N: '`.
    private func spec(_ option: CommandDescription.OptionDescription) -> String {
        let takesValue = option.valueName != nil
        let long = option.longSpelling + (takesValue ? "=" : "")
        var rest = "[" + option.headline.map { "[]:\\".contains($0) ? "\\\($0)" : String($0) }.joined() + "]"
        if let name = option.valueName {
            let action =
                switch option.value {
                case .unknown: " "
                case .file: "_files"
                case .command: "_cmdstring"
                case .choice(let choices): "(" + choices.joined(separator: " ") + ")"
                }
            rest += ":\(name):\(action)"
        }
        guard let short = option.shortSpelling else { return quoted(long + rest) }
        let exclusion = quoted("(" + option.spellings.joined(separator: " ") + ")")
        return exclusion + "{" + short + (takesValue ? "+" : "") + "," + long + "}" + quoted(rest)
    }

    /// The first operand, if it is a subcommand.
    private var verbs: String {
        let verbs = command.subcommands.map { "\($0.name)\\:\(doubleQuoted(menu($0.meaning)))" }
        return quoted("1:command:((" + verbs.joined(separator: " ") + "))")
    }

    private var targetFunction: String {
        guard case .targets(let verbs) = command.operands else { return "" }
        return """
            # The programs on the bus that the words name, if the agent answers at once.
            \(command.function)_targets() {
                local -a bus targets
                local i
                (( ${words[(I)(\(verbs.joined(separator: "|")))]} )) || return 1
                for ((i = 2; i < CURRENT; i++)); do
                    case $words[i] in
                    --session | --system | --address=*) bus+=("${(Q)words[i]}") ;;
                    --address) bus+=(--address "${(Q)words[i + 1]}") ;;
                    esac
                done
                targets=(${(f)"$(\(TargetListing.pipeline("$bus")))"})
                compadd -a -- targets
            }


            """
    }

    /// Whatever follows `--` belongs to another command.
    private var commandToRun: String {
        guard command.runsCommand else { return "" }
        return """
                local dashes=${words[(ie)--]}
                if (( dashes < CURRENT )); then
                    shift dashes words
                    (( CURRENT -= dashes ))
                    _normal
                    return
                fi

            """
    }

    /// A text within `((…))`, without its full stop.
    private func menu(_ text: String) -> String {
        String(text.hasSuffix(".") ? text.dropLast() : text[...])
    }

    private func doubleQuoted(_ text: String) -> String {
        "\"" + text.map { "\"\\$`:".contains($0) ? "\\\($0)" : String($0) }.joined() + "\""
    }

    private func quoted(_ text: String) -> String {
        "'" + text.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'"
    }
}

/// How a shell finds out which targets the agent knows.
enum TargetListing {
    /// A pipeline that writes one target per line: `:1.N`, `pid:N`, `app:ID`.
    ///
    /// It has a short timeout, as the user has pressed a key and is waiting. An application's name is chosen by another
    /// program, so one that could be special to a shell is left out.
    ///
    /// - Parameter bus: the shell's expression for the options that choose the bus.
    static func pipeline(_ bus: String) -> String {
        #"notify-lifecycle list --json -q -t 500ms \#(bus) </dev/null 2>/dev/null | sed -nE '"#
            + #"h;s/^\{"name":"(:[0-9.]+)","pid":([0-9]+),.*/\1\npid:\2/p;"#
            + #"g;s/.*,"application":"([A-Za-z0-9._-]+)",.*/app:\1/p' | sort -u"#
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// What a command is, without what it does: all that a manual page or a completion is made of.
///
/// Not generic, so that the generators are not compiled again for each command.
struct CommandDescription {
    struct OptionDescription {
        /// The long name, without the dashes.
        let long: String
        let short: Unicode.Scalar?
        let group: String
        let help: String
        /// The placeholder for the value; nil if it takes none.
        let valueName: String?
        let value: ValueKind

        /// `--count`.
        var longSpelling: String { "--" + long }
        /// `-n`.
        var shortSpelling: String? { short.map { "-" + String($0) } }
        /// `-n` and `--count`, or `--count` alone.
        var spellings: [String] { (shortSpelling.map { [$0] } ?? []) + [longSpelling] }

        /// The help for a menu: its first clause, without the full stop.
        var headline: String {
            var clause = (sentences(of: help).first ?? "").prefix { $0 != ";" }
            if let colon = clause.firstIndex(of: ":"), clause[..<colon].count >= 30 { clause = clause[..<colon] }
            return String(clause.hasSuffix(".") ? clause.dropLast() : clause)
        }
    }

    enum ValueKind: Equatable {
        /// It takes no value, or one that can't be guessed.
        case unknown
        case file, command
        case choice([String])
    }

    let name: String
    let usage: [String]
    let subcommands: [(name: String, meaning: String)]
    let options: [OptionDescription]
    let operands: OperandKind
    let runsCommand: Bool
    let exitStatus: [(status: String, meaning: String)]

    /// The names that the agent posts, if they are among what the operands may be.
    var knownNames: [String] {
        guard case .observedNames = operands else { return [] }
        return SystemEvent.all.filter { $0.source != nil }.map(\.name.string)
    }

    /// The name as that of a shell function: `_notify_wait`.
    var function: String {
        "_" + String(name.map { $0 == "-" ? "_" : $0 })
    }

    init<Settings>(_ command: Command<Settings>) {
        name = command.name
        usage = command.usage
        subcommands = command.subcommands
        options = command.options.map { option in
            let value: ValueKind =
                switch option.value?.kind {
                case .choice(let choices): .choice(choices)
                case .file: .file
                case .command: .command
                case .text, .number, .duration, nil: .unknown
                }
            return OptionDescription(
                long: option.long,
                short: option.short,
                group: option.group,
                help: option.help,
                valueName: option.value?.name,
                value: value
            )
        }
        operands = command.operands
        runsCommand = command.runsCommand
        exitStatus = command.exitStatus
    }
}

/// The sentences of a text.
///
/// By hand, because `firstRange(of:)` pulls in the standard library's regular expressions, 1.2 MB.
func sentences(of text: String) -> [String] {
    var sentences: [String] = []
    for word in text.split(separator: " ") {
        if let last = sentences.last, !last.hasSuffix(".") {
            sentences[sentences.count - 1] = last + " " + word
        } else {
            sentences.append(String(word))
        }
    }
    return sentences
}

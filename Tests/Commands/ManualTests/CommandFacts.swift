// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Testing

@testable import notify_agent
@testable import notify_lifecycle
@testable import notify_post
@testable import notify_state
@testable import notify_top
@testable import notify_wait

/// What the definition of a command says, and its manual page and completions must say too.
struct CommandFacts: CustomTestStringConvertible, Sendable {
    let name: String
    let section: Int
    /// `-n`, `--count` and so on.
    let spellings: [String]
    let subcommands: [String]
    /// The options that take one of several words, and the words.
    let choices: [(option: String, words: [String])]
    let statuses: [String]

    var testDescription: String { name }

    /// The paths of the page and the completions, below the common folder.
    var page: String { "man/\(name).\(section)" }
    var bash: String { "completions/bash/\(name)" }
    var zsh: String { "completions/zsh/_\(name)" }
    var fish: String { "completions/fish/\(name).fish" }

    private init<Settings>(_ command: Command<Settings>, section: Int) {
        name = command.name
        self.section = section
        spellings = command.options.flatMap { option in
            (option.short.map { ["-" + String($0)] } ?? []) + ["--" + option.long]
        }
        subcommands = command.subcommands.map(\.name)
        choices = command.options.compactMap { option in
            guard case .choice(let words) = option.value?.kind else { return nil }
            return ("--" + option.long, words)
        }
        statuses = command.exitStatus.map(\.status)
    }

    static let all = [
        CommandFacts(PostCommand.command, section: 1), CommandFacts(WaitCommand.command, section: 1),
        CommandFacts(LifecycleCommand.command, section: 1), CommandFacts(AgentCommand.command, section: 8),
        CommandFacts(StateCommand.command, section: 1),
        CommandFacts(TopCommand.command, section: 1),
    ]
}

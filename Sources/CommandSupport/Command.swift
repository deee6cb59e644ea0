// SPDX-License-Identifier: Apache-2.0

/// A command as data: all that parsing, `--help`, a manual page and completions need.
package struct Command<Settings>: Sendable {
    package let name: String
    /// The lines after `Usage:`, without the command's name.
    package let usage: [String]
    /// What it does, a paragraph an element.
    package let summary: [String]
    /// What the first operand chooses among, if it does so, and what each does.
    package let subcommands: [(name: String, meaning: String)]
    package let options: [Option<Settings>]
    /// What the operands are, for completion.
    package let operands: OperandKind
    /// Whether `--` and a command to run may follow.
    package let runsCommand: Bool
    /// The exit statuses and their meaning.
    package let exitStatus: [(status: String, meaning: String)]
    /// Lines to try.
    package let examples: [String]

    package init(
        name: String,
        usage: [String],
        summary: [String],
        subcommands: [(name: String, meaning: String)] = [],
        options: [Option<Settings>],
        operands: OperandKind = .none,
        runsCommand: Bool = false,
        exitStatus: [(status: String, meaning: String)],
        examples: [String]
    ) {
        self.name = name
        self.usage = usage
        self.summary = summary
        self.subcommands = subcommands
        self.options = options
        self.operands = operands
        self.runsCommand = runsCommand
        self.exitStatus = exitStatus
        self.examples = examples
    }
}

/// What the operands of a command are, for completion.
package enum OperandKind: Sendable {
    /// There are none.
    case none
    /// Names of notifications, which nobody can guess.
    case names
    /// A subcommand, and after one of these whom the agent knows: `pid:N`, `:1.N` and `app:ID`.
    case targets(after: [String])
}

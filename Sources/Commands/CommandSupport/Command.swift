// SPDX-License-Identifier: Apache-2.0

/// A command as data: everything needed for parsing, `--help`, a manual page and completions.
package struct Command<Settings>: Sendable {
    package let name: String
    /// The lines after `Usage:`, without the command's name.
    package let usage: [String]
    /// What it does, one element per paragraph.
    package let summary: [String]
    /// The subcommands for the first operand, if there are any, and what each does.
    package let subcommands: [(name: String, meaning: String)]
    package let options: [Option<Settings>]
    /// The kind of operands, for completion.
    package let operands: OperandKind
    /// Whether operands may be numbers, so that a negative one is no unknown option.
    package let hasNumbers: Bool
    /// Whether `--` and a command to run may follow.
    package let runsCommand: Bool
    /// The exit statuses and their meaning.
    package let exitStatus: [(status: String, meaning: String)]
    /// Example command lines.
    package let examples: [String]

    package init(
        name: String,
        usage: [String],
        summary: [String],
        subcommands: [(name: String, meaning: String)] = [],
        options: [Option<Settings>],
        operands: OperandKind = .none,
        hasNumbers: Bool = false,
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
        self.hasNumbers = hasNumbers
        self.runsCommand = runsCommand
        self.exitStatus = exitStatus
        self.examples = examples
    }
}

/// The kind of a command's operands, for completion.
package enum OperandKind: Sendable {
    /// There are none.
    case none
    /// Names of notifications, which can't be guessed.
    case names
    /// Names to observe: those that the agent posts itself are known.
    case observedNames
    /// A subcommand, and after one of these whom the agent knows: `pid:N`, `:1.N` and `app:ID`.
    case targets(after: [String])
}

/// One of the commands that the program of all commands can run as.
package struct Program {
    package let run: ([Argument]) -> ExitCode

    /// - Parameters:
    ///   - command: what `--generate` describes.
    ///   - run: runs the command with its arguments.
    package init<Settings>(
        _ command: @escaping @autoclosure () -> Command<Settings>,
        run: @escaping ([Argument]) -> ExitCode
    ) {
        self.run = { arguments in Command.generate(arguments, for: command()) ?? run(arguments) }
    }
}

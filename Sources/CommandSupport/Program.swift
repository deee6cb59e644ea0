// SPDX-License-Identifier: Apache-2.0

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

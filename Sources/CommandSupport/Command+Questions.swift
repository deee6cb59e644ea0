// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Command {
    /// Answers `--help` or `--version` on standard output.
    package func answer(_ question: CommonOptions.Question) -> ExitCode {
        let text =
            switch question {
            case .help: help
            case .version: name + " (NotifyBus) " + notifyBusVersion + "\n"
            }
        return print(text)
    }

    /// Writes `text` to standard output. It is not an error if the reader has gone away.
    func print(_ text: String) -> ExitCode {
        switch StandardStreams.write(text, to: STDOUT_FILENO) {
        case .written, .readerGone:
            return .done
        case .failed(let number):
            Diagnostics(command: name).error("can't write to standard output: \(Diagnostics.text(of: number))")
            return .failed
        }
    }
}

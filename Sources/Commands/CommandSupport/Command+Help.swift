// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Command {
    /// The column at which explanations start, and the one at which lines are wrapped.
    private var column: Int { 26 }
    private var width: Int { 80 }

    /// The text of `--help`.
    package var help: String {
        var text = ""
        for (index, line) in usage.enumerated() {
            text += (index == 0 ? "Usage: " : "       ") + name + " " + line + "\n"
        }
        for paragraph in summary {
            text += "\n" + folded(paragraph, indent: 0) + "\n"
        }
        if !subcommands.isEmpty {
            text += "\nCommands:\n"
            for subcommand in subcommands {
                text += entry("  " + subcommand.name, subcommand.meaning)
            }
        }
        var groups: [String] = []
        for option in options where !groups.contains(option.group) {
            groups.append(option.group)
        }
        for group in groups {
            text += "\n" + group + ":\n"
            for option in options where option.group == group {
                text += entry(label(of: option), option.help)
            }
        }
        text += "\nExit status:\n"
        for line in exitStatus {
            text += entry("  " + line.status, line.meaning)
        }
        if !examples.isEmpty {
            text += "\nExamples:\n"
            for example in examples {
                text += "  " + example + "\n"
            }
        }
        return text
    }

    private func label(of option: Option<Settings>) -> String {
        var label = option.short.map { "  -" + String($0) + ", " } ?? "      "
        label += "--" + option.long
        if let value = option.value {
            label += " " + value.name
        }
        return label
    }

    private func entry(_ label: String, _ explanation: String) -> String {
        let body = folded(explanation, indent: column)
        if label.count + 2 > column {
            return label + "\n" + String(repeating: " ", count: column) + body + "\n"
        }
        return label + String(repeating: " ", count: column - label.count) + body + "\n"
    }

    /// `text` in lines of at most `width`; every line except the first is indented by `indent` spaces.
    private func folded(_ text: String, indent: Int) -> String {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, indent + line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        lines.append(line)
        return lines.joined(separator: "\n" + String(repeating: " ", count: indent))
    }
}

extension Command {
    /// Answers `--help` or `--version` on standard output.
    package func answer(_ question: CommonOptions.Question) -> ExitCode {
        let text =
            switch question {
            case .help: help
            case .version: name + " (NotifyBus) " + notifyBusVersion + notifyBusCommit + "\n"
            }
        return print(text)
    }

    /// Writes `text` to standard output. It is not an error if the reader has gone away.
    func print(_ text: String) -> ExitCode {
        do throws(CommandFailure) {
            try StandardStreams.print(text)
            return .done
        } catch {
            return Diagnostics(command: name).fail(error)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

/// The sections of a manual page that are derived from a command's definition, for man(7).
struct ManualSections {
    private let command: CommandDescription
    /// The placeholders, which a page shows in italics.
    private let placeholders: Set<String>

    init(_ command: CommandDescription) {
        self.command = command
        placeholders = Set(command.options.compactMap(\.valueName))
            .union(["ARG", "COMMAND", "FILE", "NAME", "NAMEs", "OPTION", "TARGET", "TARGETs"])
    }

    var synopsis: String {
        var lines: [String] = []
        for line in command.usage {
            lines.append(bold(command.name) + " " + marked(line, literals: true))
        }
        return lines.joined(separator: "\n.br\n") + "\n"
    }

    var commands: String {
        command.subcommands.map { tagged(bold($0.name), $0.meaning) }.joined()
    }

    /// Every option, under the headings of `--help`.
    var options: String {
        var text = ""
        var group: String?
        for option in command.options {
            if option.group != group { text += ".SS " + escaped(option.group) + "\n" }
            group = option.group
            var tag = option.spellings.map(bold).joined(separator: ", ")
            if let value = option.valueName { tag += " " + italic(value) }
            text += tagged(tag, option.help)
        }
        return text
    }

    var exitStatus: String {
        command.exitStatus.map { tagged(bold($0.status), $0.meaning) }.joined()
    }

    /// A list entry, with one sentence per line as is customary in roff.
    func tagged(_ tag: String, _ text: String) -> String {
        ".TP\n" + tag + "\n" + sentences(of: text).map { folded(marked($0)) + "\n" }.joined()
    }

    /// `text` in lines of at most 80 bytes, none of which is a roff request.
    private func folded(_ text: String) -> String {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.utf8.count + 1 + word.utf8.count > 80 {
                lines.append(line)
                line = ""
            }
            let isRequest = line.isEmpty && (word.hasPrefix(".") || word.hasPrefix("'"))
            line += (line.isEmpty ? "" : " ") + (isRequest ? "\\&" : "") + word
        }
        lines.append(line)
        return lines.joined(separator: "\n")
    }

    /// `text` with options and variables in bold and placeholders in italics.
    ///
    /// - Parameter literals: whether every other word is to be typed literally, as in a synopsis.
    private func marked(_ text: String, literals: Bool = false) -> String {
        var result = ""
        var rest = text[...]
        while let first = rest.first {
            let word = rest.prefix { $0.isLetter || $0.isNumber || "-_$".contains($0) }
            if word.isEmpty {
                result += escaped(String(first))
                rest = rest.dropFirst()
                continue
            }
            rest = rest[word.endIndex...]
            if placeholders.contains(String(word)) {
                result += italic(String(word))
            } else if literals || (word.count > 1 && (first == "-" || first == "$")) {
                result += bold(String(word))
            } else {
                result += escaped(String(word))
            }
        }
        return result
    }

    func bold(_ text: String) -> String { "\\fB" + escaped(text) + "\\fR" }
    private func italic(_ text: String) -> String { "\\fI" + escaped(text) + "\\fR" }

    /// Keeps backslashes and minus signs; otherwise a minus becomes a hyphen, which can't be pasted.
    private func escaped(_ text: String) -> String {
        text.map { $0 == "\\" ? "\\e" : $0 == "-" ? "\\-" : String($0) }.joined()
    }
}

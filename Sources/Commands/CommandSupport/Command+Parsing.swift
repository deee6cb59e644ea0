// SPDX-License-Identifier: Apache-2.0

/// The arguments of a command line that are not options.
package struct Operands {
    package var beforeDashes: [Argument] = []
    /// The arguments after the first `--`; nil if there is none.
    package var afterDashes: [Argument]?

    package init() {}
}

extension Command where Settings: CommonSettings {
    /// Parses a command line, reporting what is wrong with it, or answers `--help` and `--version`.
    ///
    /// - Parameter understand: turns the operands and the settings into a request.
    /// - Returns: the request, or the status to exit with.
    package func begin<Request>(
        _ arguments: [Argument],
        _ settings: inout Settings,
        _ diagnostics: inout Diagnostics,
        _ understand: (Operands, inout Settings) throws(UsageError) -> Request
    ) -> Result<Request, EarlyEnd> {
        do throws(UsageError) {
            let operands = try parse(arguments, into: &settings)
            if let question = settings.common.question { return .failure(EarlyEnd(code: answer(question))) }
            let request = try understand(operands, &settings)
            diagnostics.verbosity = settings.common.verbosity
            return .success(request)
        } catch {
            diagnostics.error(error.message)
            return .failure(EarlyEnd(code: .usage))
        }
    }
}

/// A command exits without doing any work.
package struct EarlyEnd: Error {
    package let code: ExitCode
}

extension Command {
    /// Applies the options among `arguments` to `settings` and returns the rest.
    ///
    /// Options may follow operands, as in GNU tools; `-` alone is an operand.
    package func parse(_ arguments: [Argument], into settings: inout Settings) throws(UsageError) -> Operands {
        var operands = Operands()
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let bytes = argument.bytes
            if bytes.count < 2 || bytes[0] != UInt8(ascii: "-") || hasNumbers && Self.isDigit(bytes[1]) {
                operands.beforeDashes.append(argument)
            } else if bytes[1] != UInt8(ascii: "-") {
                try parseShort(argument, &rest, &settings)
            } else if bytes.count > 2 {
                try parseLong(argument, &rest, &settings)
            } else {
                operands.afterDashes = Array(rest)
                break
            }
        }
        return operands
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// `-q`, `-qv`, `-n5`, `-n 5`, `-qn5`.
    private func parseShort(
        _ argument: Argument,
        _ rest: inout ArraySlice<Argument>,
        _ settings: inout Settings
    ) throws(UsageError) {
        let bytes = argument.bytes
        var offset = 1
        while offset < bytes.count {
            let byte = bytes[offset]
            offset += 1
            guard byte < 0x80, let option = option(where: { $0.short == Unicode.Scalar(byte) }) else {
                // A non-ASCII letter is several bytes, so the whole argument is shown.
                throw unknown(
                    byte < 0x80
                        ? Printable.text("-" + String(Unicode.Scalar(byte))) : Printable.text(bytes, limit: 60)
                )
            }
            switch option.action {
            case .flag(let apply):
                try apply(&settings)
            case .value(let value, let apply):
                let spelling = "-" + String(Unicode.Scalar(byte))
                guard let given = offset < bytes.count ? argument.dropFirst(offset) : rest.popFirst() else {
                    throw missing(value, spelling)
                }
                try take(given, value, spelling, apply, &settings)
                return
            }
        }
    }

    /// `--count=5`, `--count 5`, `--follow`.
    private func parseLong(
        _ argument: Argument,
        _ rest: inout ArraySlice<Argument>,
        _ settings: inout Settings
    ) throws(UsageError) {
        let body = argument.dropFirst(2).bytes
        let equals = body.firstIndex(of: UInt8(ascii: "="))
        let name = UnsafeRawBufferPointer(rebasing: body[..<(equals ?? body.endIndex)])
        guard let option = option(where: { name.elementsEqual($0.long.utf8) }) else {
            let spelling = "--" + Printable.text(name, limit: 60)
            throw unknown(spelling, suggestion: nearestWord(to: name, among: options.map(\.long)))
        }
        let spelling = "--" + option.long
        switch option.action {
        case .flag(let apply):
            if equals != nil {
                throw UsageError("option '\(spelling)' doesn't take a value")
            }
            try apply(&settings)
        case .value(let value, let apply):
            guard let given = equals.map({ argument.dropFirst(2 + $0 + 1) }) ?? rest.popFirst() else {
                throw missing(value, spelling)
            }
            try take(given, value, spelling, apply, &settings)
        }
    }

    /// A loop over indices: as the type of the settings is not known here, `first(where:)` would make Swift's runtime
    /// search all conformances of the program, which took a twentieth of a command's start-up time.
    private func option(where fits: (Option<Settings>) -> Bool) -> Option<Settings>? {
        var index = 0
        while index < options.count {
            if fits(options[index]) { return options[index] }
            index += 1
        }
        return nil
    }

    private func take(
        _ given: Argument,
        _ value: Option<Settings>.Value,
        _ spelling: String,
        _ apply: Option<Settings>.ApplyValue,
        _ settings: inout Settings
    ) throws(UsageError) {
        if case .choice(let choices) = value.kind, !choices.contains(where: { given.bytes.elementsEqual($0.utf8) }) {
            let list = choices.dropLast().joined(separator: ", ") + " or " + (choices.last ?? "")
            throw UsageError("option '\(spelling)' must be \(list), not \(given.quoted)")
        }
        do throws(UsageError) {
            try apply(&settings, given)
        } catch {
            throw UsageError("option '\(spelling)': \(error.message)")
        }
    }

    private func missing(_ value: Option<Settings>.Value, _ spelling: String) -> UsageError {
        UsageError("option '\(spelling)' requires a value, as in '\(spelling) \(value.name)'")
    }

    private func unknown(_ spelling: String, suggestion: String? = nil) -> UsageError {
        if let suggestion {
            return UsageError("unknown option '\(spelling)'; did you mean '--\(suggestion)'?")
        }
        return UsageError("unknown option '\(spelling)'; see '\(name) --help'")
    }
}

extension Command {
    /// Removes the first operand and returns the subcommand that it names.
    package func takeSubcommand(from operands: inout [Argument]) throws(UsageError) -> String {
        let names = subcommands.map(\.name)
        guard !operands.isEmpty else {
            let list = names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
            throw UsageError("missing command; use \(list)")
        }
        let operand = operands.removeFirst()
        if let name = names.first(where: { operand.bytes.elementsEqual($0.utf8) }) { return name }
        if let near = nearestWord(to: operand.bytes, among: names) {
            throw UsageError("unknown command \(operand.quoted); did you mean '\(near)'?")
        }
        throw UsageError("unknown command \(operand.quoted); see '\(name) --help'")
    }
}

/// The one among `words` that was most likely meant by `name`; nil if none is close.
func nearestWord(to name: UnsafeRawBufferPointer, among words: [String]) -> String? {
    // Longer than any word by more than a typo.
    guard name.count < 40 else { return nil }
    let beginnings = words.filter { $0.utf8.starts(with: name) }
    if beginnings.count == 1 { return beginnings[0] }
    var best: (word: String, distance: Int)?
    for word in words {
        let distance = editDistance(Array(name), Array(word.utf8))
        if distance < best?.distance ?? Int.max {
            best = (word, distance)
        }
    }
    guard let best, best.distance <= max(1, best.word.utf8.count / 3) else { return nil }
    return best.word
}

/// How many bytes must be inserted, deleted, replaced or swapped with their neighbour to turn `a` into `b`.
private func editDistance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var rows = [Array(0...b.count)]
    for i in 0..<a.count {
        var row = [i + 1]
        for j in 0..<b.count {
            var cost = min(rows[i][j] + (a[i] == b[j] ? 0 : 1), rows[i][j + 1] + 1, row[j] + 1)
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                cost = min(cost, rows[i - 1][j - 1] + 1)
            }
            row.append(cost)
        }
        rows.append(row)
    }
    return rows[a.count][b.count]
}

// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// A file of `launch.d`. See notifybus-launch(5).
package enum LaunchFile {
    /// What is wrong, and in which line; 0 if it concerns the whole file.
    package struct Fault: Error, Equatable, Sendable {
        package let line: Int
        package let text: String

        package init(line: Int, text: String) { (self.line, self.text) = (line, text) }

        /// The error in readable form: `FILE:LINE: MESSAGE`.
        package func text(in path: String) -> String { path + (line > 0 ? ":\(line)" : "") + ": " + text }
    }

    /// The maximum number of names and prefixes of one entry.
    static let maximumNames = 4_096
    static let maximumConditions = 16

    /// Parses an entry: `KEY = VALUE`, one per line; empty lines and those that begin with `#` are ignored.
    ///
    /// - Parameter trust: whose posts count by default.
    package static func read(_ text: String, title: String, trust: LaunchEntry.Trust) throws(Fault) -> LaunchEntry {
        var draft = Draft(trust: trust)
        for line in SettingsText(text).lines {
            do throws(Complaint) {
                guard let value = line.value else { throw Complaint("missing '=' in '\(line.key)'") }
                try draft.set(line.key, to: value)
            } catch {
                throw Fault(line: line.number, text: error.text)
            }
        }
        do throws(Complaint) {
            return try draft.entry(title)
        } catch {
            throw Fault(line: 0, text: error.text)
        }
    }

    package struct Complaint: Error {
        package let text: String

        init(_ text: String) { self.text = text }
    }
}

/// An entry while its file is being parsed.
private struct Draft {
    typealias Complaint = LaunchFile.Complaint

    private static let keys = [
        "name", "prefix", "when", "start", "run", "activate", "on-busy", "settle", "limit", "environment", "from",
        "enabled",
    ]
    /// May be given more than once.
    private static let lists: Set<String> = ["name", "prefix", "when", "environment"]

    private var subjects = Subjects()
    private var actions: [LaunchEntry.Action] = []
    private var given: Set<String> = []
    private var template: LaunchEntry

    init(trust: LaunchEntry.Trust) {
        template = LaunchEntry(title: "", action: .command([]))
        template.trust = trust
    }

    mutating func set(_ key: String, to value: String) throws(Complaint) {
        guard Draft.keys.contains(key) else {
            throw Complaint("unknown setting '\(key)'; the settings are " + Draft.keys.joined(separator: ", "))
        }
        guard given.insert(key).inserted || Draft.lists.contains(key) else {
            throw Complaint("'\(key)' is given twice")
        }
        switch key {
        case "name" where value.hasSuffix(".*"): try addPrefix(value)
        case "name": subjects.names.insert(try name(value))
        case "prefix": try addPrefix(value)
        case "when": template.conditions.append(try condition(value))
        case "start": actions.append(.unit(try unit(value)))
        case "run": actions.append(.command(try command(value)))
        case "activate": actions.append(.activation(try busName(value)))
        case "on-busy": template.onBusy = try word(value)
        case "settle": template.settle = try duration(value)
        case "limit": template.limit = try limit(value)
        case "environment": template.environment.append(try variable(value))
        case "from": template.trust = try word(value)
        default: template.isEnabled = try yesOrNo(value)
        }
        guard subjects.names.count + subjects.prefixes.count <= LaunchFile.maximumNames else {
            throw Complaint("too many names; an entry has at most \(LaunchFile.maximumNames)")
        }
        guard template.conditions.count <= LaunchFile.maximumConditions else {
            throw Complaint("too many conditions; an entry has at most \(LaunchFile.maximumConditions)")
        }
    }

    func entry(_ title: String) throws(Complaint) -> LaunchEntry {
        guard !subjects.isEmpty else { throw Complaint("missing name or prefix") }
        guard let action = actions.first, actions.count == 1 else {
            throw Complaint("exactly one of start, run and activate is required")
        }
        if case .activation = action, template.onBusy == .restart {
            throw Complaint("'on-busy = restart' can only be used with start or run")
        }
        if case .command = action {
        } else if !template.environment.isEmpty {
            throw Complaint("'environment' can only be used with run")
        }
        var entry = template
        (entry.title, entry.action, entry.subjects) = (title, action, subjects)
        return entry
    }

    // MARK: - Values

    private func name(_ text: String) throws(Complaint) -> NotifyName {
        let name: NotifyName
        do throws(NotifyBusError) {
            name = try NotifyName(text)
        } catch {
            throw Complaint("'\(text)' is not a valid name; use 1 to \(NotifyName.maximumLength) bytes")
        }
        if name.staysInProcess { throw Complaint("'\(text)' never leaves its process") }
        try checkPrintable(text)
        return name
    }

    private func condition(_ text: String) throws(Complaint) -> LaunchEntry.Condition {
        let isNegated = text.utf8.first == UInt8(ascii: "!")
        return LaunchEntry.Condition(
            try name(isNegated ? SettingsText.trimmed(text.dropFirst()) : text),
            isNegated: isNegated
        )
    }

    private func checkPrintable(_ text: String) throws(Complaint) {
        if text.hasControlCharacters { throw Complaint("control characters are not allowed in '\(text)'") }
    }

    /// Whole dotted components: `com.example` also matches `com.example.a`, but not `com.examples`. `com.example.` and
    /// `com.example.*` match only what is below.
    private mutating func addPrefix(_ value: String) throws(Complaint) {
        let text = value.hasSuffix(".*") ? String(value.utf8.dropLast()) ?? "" : value
        try checkPrintable(text)
        let stem = text.utf8.last == UInt8(ascii: ".") ? String(text.utf8.dropLast()) ?? "" : text
        let prefix = stem + "."
        guard !stem.isEmpty, prefix.utf8.count <= NotifyName.maximumLength else {
            throw Complaint("'\(text)' is not a valid prefix; use 1 to \(NotifyName.maximumLength - 1) bytes")
        }
        if prefix.utf8.starts(with: NotifyName.Scope.processPrefix.utf8) {
            throw Complaint("'\(text)' never leaves its process")
        }
        subjects.prefixes.insert(NamePrefix(prefix))
        if stem.utf8.count == text.utf8.count { subjects.names.insert(try name(stem)) }
    }

    private static let unitTypes = [
        ".service", ".socket", ".target", ".device", ".mount", ".automount", ".swap", ".timer", ".path", ".slice",
        ".scope",
    ]

    private func unit(_ text: String) throws(Complaint) -> String {
        let isLegal = text.utf8.allSatisfy { byte in
            Draft.isLetterOrDigit(byte) || ":-_.\\@".utf8.contains(byte)
        }
        guard isLegal, text.utf8.count <= 255, text.utf8.first != UInt8(ascii: "@"),
            let type = Draft.unitTypes.first(where: text.hasSuffix), text.utf8.count > type.utf8.count
        else { throw Complaint("'\(text)' is not a unit; use its full name, as in nas.service") }
        if text.hasSuffix("@" + type) {
            throw Complaint("'\(text)' is a template; name an instance, as in backup@home.service")
        }
        return text
    }

    private func command(_ text: String) throws(Complaint) -> [String] {
        let words = try CommandLineText.words(of: text)
        guard let program = words.first, !program.isEmpty else { throw Complaint("no program to run") }
        guard program.utf8.first == UInt8(ascii: "/") || !program.utf8.contains(UInt8(ascii: "/")) else {
            throw Complaint("'\(program)' is neither an absolute path nor the name of a program")
        }
        return words
    }

    private func busName(_ text: String) throws(Complaint) -> String {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isLegal = parts.allSatisfy { part in
            guard let first = part.first, !(0x30...0x39).contains(first) else { return false }
            return part.allSatisfy { Draft.isLetterOrDigit($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
        }
        guard isLegal, parts.count > 1, text.utf8.count <= 255 else {
            throw Complaint("'\(text)' is not a well-known bus name such as org.example.Editor")
        }
        return text
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
    }

    private func word<Word: RawRepresentable & CaseIterable>(_ text: String) throws(Complaint) -> Word
    where Word.RawValue == String {
        guard let word = Word(rawValue: text) else {
            throw Complaint("'\(text)' is not one of " + Word.allCases.map(\.rawValue).joined(separator: ", "))
        }
        return word
    }

    private func duration(_ text: String) throws(Complaint) -> Int64 {
        do throws(Duration.TextFault) {
            let duration = try Duration.nanoseconds(in: text.utf8)
            guard duration <= 86_400_000_000_000 else { throw .tooLong }
            return duration
        } catch .malformed {
            throw Complaint("'\(text)' is not a duration; use a number with ms, s, m or h, as in 500ms or 1m30s")
        } catch {
            throw Complaint("'\(text)' is longer than a day")
        }
    }

    private func limit(_ text: String) throws(Complaint) -> LaunchEntry.Limit {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let starts = Int(parts[0]), (1...1_000).contains(starts) else {
            throw Complaint("'\(text)' is not a limit; use 1 to 1000 starts and a duration, as in 10/10s")
        }
        let window = try duration(String(parts[1]))
        guard window > 0 else { throw Complaint("a limit needs a duration, as in 10/10s") }
        return LaunchEntry.Limit(starts: starts, window: window)
    }

    private func variable(_ text: String) throws(Complaint) -> String {
        let name = text.utf8.prefix { $0 != UInt8(ascii: "=") }
        guard name.count < text.utf8.count, let first = name.first, !(0x30...0x39).contains(first),
            name.allSatisfy({ Draft.isLetterOrDigit($0) || $0 == UInt8(ascii: "_") })
        else { throw Complaint("'\(text)' is not a variable; use KEY=VALUE") }
        try checkPrintable(text)
        return text
    }

    private func yesOrNo(_ text: String) throws(Complaint) -> Bool {
        switch text {
        case "yes": return true
        case "no": return false
        default: throw Complaint("'\(text)' is not yes or no")
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import CommandSupport
package import NotifyCore

/// One line of `export` or `import`: a name, or `com.example.*` for every name that begins with `com.example.`.
package enum NameRule: Hashable, Sendable {
    case name(NotifyName)
    /// Ends with a dot, after at least one part.
    case prefix(String)

    /// What is wrong with a line, as the rest of a sentence.
    package struct Fault: Error, Equatable {
        package let reason: String
    }

    /// Reads what follows `export =`.
    package init(_ text: String) throws(Fault) {
        let prefix = text.utf8.suffix(2).elementsEqual(".*".utf8) ? String(text.dropLast()) : nil
        if text == "*" || prefix?.utf8.first == UInt8(ascii: ".") {
            throw Fault(reason: "needs at least one whole part before '.*', as in com.example.*")
        }
        let name: NotifyName
        do {
            name = try NotifyName(prefix ?? text)
        } catch {
            throw Fault(reason: "is not a valid name: \(error.description)")
        }
        if let border = Border.crossed(by: name) {
            throw Fault(reason: "begins with '\(border)', and such names never leave the machine")
        }
        if Border.isUnprintable(name) {
            throw Fault(reason: "contains a control character, and such names never leave the machine")
        }
        self = if let prefix { .prefix(prefix) } else { .name(name) }
    }
}

/// Names that never cross, whatever the configuration says.
package enum Border {
    /// Names that stay in a process, belong to a user or the system, or are about one machine or session.
    package static let prefixes = [
        "self.", "user.uid.", "com.apple.system.", "org.notifybus.system.", "org.notifybus.session.",
    ]

    /// The prefix that keeps a name from crossing; nil if it may cross.
    package static func crossed(by name: NotifyName) -> String? {
        prefixes.first { name.string.utf8.starts(with: $0.utf8) }
    }

    /// Whether a name would break a line, move a terminal's cursor or turn text around. Here such a name is legal and
    /// harmless; but it may be written into anything elsewhere, and no honest program has one.
    package static func isUnprintable(_ name: NotifyName) -> Bool {
        name.string.unicodeScalars.contains(where: Printable.mustEscape)
    }
}

/// All lines of `export`, or all of `import`: which names cross in one direction.
package struct NameRules: Sendable {
    /// Names that no prefix covers.
    package let names: Set<NotifyName>
    /// Prefixes, none of which begins with another.
    package let prefixes: [String]

    package init(_ rules: [NameRule]) {
        var names: Set<NotifyName> = []
        var prefixes: [String] = []
        for rule in rules {
            switch rule {
            case .name(let name): names.insert(name)
            case .prefix(let prefix): prefixes.append(prefix)
            }
        }
        // The shortest first, so that prefixes covered by an earlier one can be dropped.
        var kept: [String] = []
        for prefix in prefixes.sorted(by: { $0.utf8.count < $1.utf8.count })
        where !NameRules.covers(kept, prefix) {
            kept.append(prefix)
        }
        self.prefixes = kept
        self.names = names.filter { !NameRules.covers(kept, $0.string) }
    }

    package var isEmpty: Bool { names.isEmpty && prefixes.isEmpty }

    /// Whether a name crosses.
    package func allow(_ name: NotifyName) -> Bool { judge(name) == .crosses }

    package func judge(_ name: NotifyName) -> Verdict {
        guard names.contains(name) || NameRules.covers(prefixes, name.string), Border.crossed(by: name) == nil else {
            return .notListed
        }
        return Border.isUnprintable(name) ? .unprintable : .crosses
    }

    package enum Verdict: Sendable {
        case crosses
        case notListed
        /// It is listed, but see ``Border/isUnprintable(_:)``.
        case unprintable
    }

    /// Literal bytes: `hasPrefix` would compare canonical forms.
    private static func covers(_ prefixes: [String], _ text: String) -> Bool {
        prefixes.contains { text.utf8.starts(with: $0.utf8) }
    }
}

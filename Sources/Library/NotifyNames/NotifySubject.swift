// SPDX-License-Identifier: Apache-2.0

/// What an observer hears: names, all names with a prefix, or several of these.
///
/// A string literal is a name:
///
/// ```swift
/// try center.addObserver(for: "com.example.backup.done") { … }
/// try center.addObserver(for: .prefix("com.example.backup.")) { … }
/// try center.addObserver(for: .any(of: [.name(.backupDone), .prefix("com.example.config.")])) { … }
/// ```
///
/// An observer hears a post once, even if several parts of its subject match.
public struct NotifySubject: Hashable, Sendable {
    package let names: [NotifyName]
    package let prefixes: [NamePrefix]

    package init(names: [NotifyName] = [], prefixes: [NamePrefix] = []) {
        self.names = names
        self.prefixes = prefixes
    }

    /// One name.
    public static func name(_ name: NotifyName) -> NotifySubject {
        NotifySubject(names: [name])
    }

    /// Several names. Observing them together costs about as much as observing one.
    public static func names(_ names: [NotifyName]) -> NotifySubject {
        NotifySubject(names: names)
    }

    /// Every name that begins with a prefix, compared byte by byte.
    ///
    /// A prefix of whole dotted parts, such as `com.example.`, is the cheapest, as the bus itself then filters the
    /// names. Observing throws an error with the code `invalidName` if the prefix is longer than 511 bytes or contains
    /// a NUL.
    public static func prefix(_ prefix: String) -> NotifySubject {
        NotifySubject(prefixes: [NamePrefix(prefix)])
    }

    /// Every name.
    public static var everything: NotifySubject { .prefix("") }

    /// Everything that at least one of these subjects includes.
    public static func any(of subjects: [NotifySubject]) -> NotifySubject {
        NotifySubject(names: subjects.flatMap(\.names), prefixes: subjects.flatMap(\.prefixes))
    }
}

extension NotifySubject: ExpressibleByStringLiteral {
    /// One name, given as a literal.
    ///
    /// A literal that is not a valid name ends the program with a message; see ``NotifyName/init(stringLiteral:)``.
    public init(stringLiteral name: String) {
        self.init(names: [NotifyName(stringLiteral: name)])
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// What an observer hears, where a list of names won't do: all names with a prefix, or several kinds of these.
///
/// ```swift
/// try await center.addObserver(matching: .prefix("com.example.backup.")) { … }
/// try await center.addObserver(matching: [.name(.backupDone), .prefix("com.example.config.")]) { … }
/// ```
///
/// A string literal is a name, and an array literal is several subjects. An observer hears a post once, even if several
/// parts of its subject match.
public struct NotifySubject: Hashable, Sendable {
    package let core: NotifyCore.NotifySubject

    private init(names: [NotifyName] = [], prefixes: [NamePrefix] = []) {
        core = NotifyCore.NotifySubject(names: names.map(\.core), prefixes: prefixes)
    }

    /// One name.
    public static func name(_ name: NotifyName) -> NotifySubject {
        NotifySubject(names: [name])
    }

    /// Several names. Observing them together costs about as much as observing one.
    ///
    /// With no names at all, observing throws an error with the code `invalidName`.
    public static func names(_ names: [NotifyName]) -> NotifySubject {
        NotifySubject(names: names)
    }

    /// Every name that begins with a prefix.
    ///
    /// A prefix of whole dotted parts, such as `com.example.`, is the cheapest, as the bus itself then filters the
    /// names.
    public static func prefix(_ prefix: NotifyPrefix) -> NotifySubject {
        NotifySubject(prefixes: [prefix.prefix])
    }

    /// Every name.
    public static var everything: NotifySubject { NotifySubject(prefixes: [NamePrefix("")]) }

    /// Everything that at least one of these subjects includes.
    ///
    /// With no subjects at all, observing throws an error with the code `invalidName`.
    public static func any(of subjects: [NotifySubject]) -> NotifySubject {
        NotifySubject(
            names: subjects.flatMap { $0.core.names.map { NotifyName($0) } },
            prefixes: subjects.flatMap(\.core.prefixes)
        )
    }
}

extension NotifySubject: ExpressibleByStringLiteral, ExpressibleByArrayLiteral {
    /// One name, given as a literal.
    ///
    /// A literal that is not a valid name ends the program with a message; see ``NotifyName/init(stringLiteral:)``.
    public init(stringLiteral name: String) {
        self.init(names: [NotifyName(stringLiteral: name)])
    }

    /// Everything that at least one of these subjects includes.
    public init(arrayLiteral subjects: NotifySubject...) {
        self = .any(of: subjects)
    }
}

extension NotifySubject {
    /// How to write in Swift what a pattern such as `com.example.*` stands for.
    static func spelling(of pattern: String) -> String {
        pattern == "*" ? ".everything" : ".prefix(\"\(pattern.dropLast())\")"
    }
}

extension NotifySubject: CustomStringConvertible {
    /// The subject in words: “com.example.done or every name that begins with com.example.config.”.
    public var description: String { core.description }
}

/// What names begin with, compared byte by byte: 1 to 511 bytes of UTF-8 without NUL, as in a name.
///
/// A string literal is a prefix: `.prefix("com.example.")`. It need not end in a dot.
public struct NotifyPrefix: Hashable, Sendable {
    package let prefix: NamePrefix

    /// Creates a prefix from a string.
    ///
    /// - Throws: ``NotifyBusError`` with the code `invalidName` if the string is empty, longer than 511 bytes in UTF-8,
    ///   or contains a NUL: no name can begin like that, or every name does, for which there is
    ///   ``NotifySubject/everything``.
    public init(_ string: String) throws(NotifyBusError) {
        if string.isEmpty { throw NotifyBusError(.invalidName, "The prefix is empty; use .everything for all names.") }
        // Any prefix of a name is a name.
        prefix = NamePrefix(try NotifyName(string).rawValue)
    }
}

extension NotifyPrefix: ExpressibleByStringLiteral, CustomStringConvertible {
    /// Creates a prefix from a literal.
    ///
    /// A literal that is not a valid prefix is a programming error and ends the program with a message. A debug build
    /// also stops at `*`, and at one that ends in `.*`: the commands read these as patterns, but a prefix needs no
    /// asterisk.
    public init(stringLiteral text: String) {
        assert(
            NamePrefix(pattern: text) == nil,
            "“\(text)” is a pattern for the commands. A prefix needs no asterisk: \(NotifySubject.spelling(of: text))."
        )
        do throws(NotifyBusError) {
            // Not `NotifyPrefix(text)` with a literal, which would recurse.
            try self.init(text)
        } catch {
            fatalError("“\(text)” is not a valid prefix. \(error)")
        }
    }

    /// The prefix as a string.
    public var description: String { prefix.string }
}

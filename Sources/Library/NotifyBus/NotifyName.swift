// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// The name of a notification: 1 to 511 bytes of UTF-8 without NUL.
///
/// By convention a name is written in reverse-DNS style, such as `com.example.backup.done`, but any text will do. Names
/// are compared byte by byte, so case and Unicode normalization matter.
///
/// Some names have a special meaning:
///
/// - `self.…` stays inside the process; no bus is needed for it.
/// - `user.uid.N` and `user.uid.N.…` belong to the user with the numeric ID N: only that user and root can post them.
/// - `com.apple.system.…` and `org.notifybus.system.…` are reserved: on the system bus only root can post them.
///
/// The rules are those of notify(3), with one difference: a name that is too long is an error and never truncated.
///
/// Declare names that a program uses repeatedly as constants:
///
/// ```swift
/// extension NotifyName {
///     static let backupDone: Self = "com.example.backup.done"
/// }
/// ```
public struct NotifyName: Hashable, Sendable, CustomStringConvertible {
    /// The maximum length of a name in bytes, not counting a terminating NUL.
    public static let maximumLength = 511

    package let core: CoreName

    package init(_ core: CoreName) { self.core = core }

    /// Creates a name from a string.
    ///
    /// - Throws: ``NotifyBusError`` with the code `invalidName` if the string is empty, longer than 511 bytes in
    ///   UTF-8, or contains a NUL.
    public init(_ string: String) throws(NotifyBusError) {
        core = try rethrowing { () throws(CoreError) in try CoreName(string) }
    }

    /// Creates a name from bytes.
    ///
    /// - Throws: ``NotifyBusError`` with the code `invalidName` if there are no bytes or more than 511, if one is NUL,
    ///   or if they are not UTF-8.
    public init(utf8 bytes: UnsafeRawBufferPointer) throws(NotifyBusError) {
        core = try rethrowing { () throws(CoreError) in try CoreName(utf8: bytes) }
    }

    /// The name as a string.
    public var description: String { core.string }

    // Not left to the compiler, which would compare the strings of what is RawRepresentable, and these not byte by byte.

    /// Two names are equal if their bytes are equal.
    public static func == (left: NotifyName, right: NotifyName) -> Bool { left.core == right.core }

    /// Feeds the bytes of the name into a hasher.
    public func hash(into hasher: inout Hasher) { core.hash(into: &hasher) }
}

extension NotifyName: ExpressibleByStringLiteral {
    /// Creates a name from a literal.
    ///
    /// A literal that is not a valid name is a programming error and ends the program with a message when the literal
    /// is first used or, for a constant, when the constant is. For text from elsewhere use the throwing initializer.
    ///
    /// The commands read `com.example.*` as a pattern; as a name it would be heard only where just that is posted. A
    /// debug build stops there.
    public init(stringLiteral text: String) {
        assert(
            NamePrefix(pattern: text) == nil,
            "“\(text)” is a pattern for the commands, and would be a name with an asterisk here. To observe every name "
                + "that begins like this, use \(NotifySubject.spelling(of: text)). If it is the name, use "
                + "NotifyName(rawValue:)."
        )
        core = CoreName(stringLiteral: text)
    }
}

extension NotifyName: RawRepresentable, Codable {
    /// The name as a string.
    public var rawValue: String { core.string }

    /// Creates a name from a string; nil if it is not a valid one.
    public init?(rawValue: String) {
        guard let name = try? NotifyName(rawValue) else { return nil }
        self = name
    }

    /// Decodes a name from a string.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if the string is not a valid name.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        do throws(NotifyBusError) {
            try self.init(text)
        } catch {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: error.description)
        }
    }

    /// Encodes the name as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The name of a notification: 1 to 511 bytes of UTF-8 without NUL, compared byte by byte. The module NotifyBus has the
/// public form, and says what is special about some names.
package struct NotifyName: Hashable, Sendable, CustomStringConvertible {
    /// The maximum length of a name in bytes, not counting a terminating NUL.
    package static let maximumLength = 511

    // Everything on the path of a post or a delivery is inlinable; otherwise each would take 128 instructions more.
    @usableFromInline
    package final class Storage: Sendable {
        @usableFromInline package let string: String
        /// Hashes by the wire format's hash, which is part of the interface that carries a long name. Anybody can
        /// construct collisions.
        @usableFromInline package let hash: UInt64
        @usableFromInline package let scope: Scope

        init(string: String, hash: UInt64, scope: Scope) {
            self.string = string
            self.hash = hash
            self.scope = scope
        }
    }

    @usableFromInline package let storage: Storage

    /// Creates a name from a string.
    ///
    /// - Throws: ``NotifyBusError`` with the code `invalidName` if the string is empty, longer than 511 bytes in
    ///   UTF-8, or contains a NUL.
    package init(_ string: String) throws(NotifyBusError) {
        var string = string
        // This also makes the string contiguous.
        let (fault, hash, scope) = string.withUTF8 { utf8 in
            let bytes = UnsafeRawBufferPointer(utf8)
            return (NotifyName.fault(in: bytes), fnv1a64(bytes), Scope(of: bytes))
        }
        if let fault { throw NotifyBusError(.invalidName, fault) }
        storage = Storage(string: string, hash: hash, scope: scope)
    }

    /// Creates a name from bytes.
    ///
    /// - Throws: ``NotifyBusError`` with the code `invalidName` if there are no bytes or more than 511, if one is NUL,
    ///   or if they are not UTF-8.
    package init(utf8 bytes: UnsafeRawBufferPointer) throws(NotifyBusError) {
        if let fault = NotifyName.fault(in: bytes) { throw NotifyBusError(.invalidName, fault) }
        guard let string = String(validating: bytes, as: UTF8.self) else {
            throw NotifyBusError(.invalidName, "The name is not valid UTF-8.")
        }
        storage = Storage(string: string, hash: fnv1a64(bytes), scope: Scope(of: bytes))
    }

    /// The name as a string.
    @inlinable package var string: String { storage.string }

    /// The name as a string.
    package var description: String { storage.string }

    /// Two names are equal if their bytes are equal.
    @inlinable
    package static func == (left: NotifyName, right: NotifyName) -> Bool {
        left.storage === right.storage
            || left.storage.hash == right.storage.hash && haveEqualBytes(left.storage.string, right.storage.string)
    }

    /// `elementsEqual` would take several times as long; a literal that is posted is compared each time.
    @usableFromInline
    static func haveEqualBytes(_ left: String, _ right: String) -> Bool {
        // Contiguous in every name: see the initializers.
        left.utf8.withContiguousStorageIfAvailable { left in
            right.utf8.withContiguousStorageIfAvailable { right in
                guard left.count == right.count, let one = left.baseAddress, let other = right.baseAddress else {
                    return false
                }
                return memcmp(one, other, left.count) == 0
            } ?? false
        } ?? false
    }

    /// Feeds the bytes of the name into a hasher.
    package func hash(into hasher: inout Hasher) {
        // Not the hash of the wire format, which is unseeded: strangers choose names.
        // Contiguous in every name: see the initializers.
        _ = storage.string.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Whether only one user and root may post the name, so that the sender of a post must be checked.
    @inlinable
    package var hasOwner: Bool {
        if case .owned = storage.scope { true } else { false }
    }

    /// Whether to accept a post by this user.
    package func isOpen(to user: UInt32) -> Bool { storage.scope.isOpen(to: user) }

    /// Whether only root may post the name on the system bus.
    @inlinable
    package var isReserved: Bool {
        if case .reserved = storage.scope { true } else { false }
    }

    /// Whether posts of the name stay inside the posting process.
    @inlinable
    package var staysInProcess: Bool {
        if case .process = storage.scope { true } else { false }
    }

    private static func fault(in bytes: UnsafeRawBufferPointer) -> String? {
        guard let start = bytes.baseAddress, !bytes.isEmpty else {
            return "The name is empty; it must have 1 to \(maximumLength) bytes."
        }
        if bytes.count > maximumLength {
            return "The name has \(bytes.count) bytes; at most \(maximumLength) are allowed."
        }
        if memchr(start, 0, bytes.count) != nil { return "The name contains a NUL byte, which is not allowed." }
        return nil
    }
}

/// The 64-bit FNV-1a hash, part of the wire format for long names: simple enough to implement in any language.
@inlinable
package func fnv1a64(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes {
        hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
    }
    return hash
}

extension NotifyName {
    /// Who may post a name, and how far it travels.
    @usableFromInline
    package enum Scope: Equatable, Sendable {
        /// Anyone may post it, to everyone on the bus.
        case ordinary
        /// `com.apple.system.…`, `org.notifybus.system.…`: on a path of its own, so that a bus policy can deny it.
        case reserved
        /// `user.uid.N…`: accepted only from user N and root; from root alone if N is not a user ID (nil).
        case owned(by: UInt32?)
        /// `self.…`: never leaves the process.
        case process

        package static let processPrefix = "self."
        /// Darwin's own prefix, and that of names for which Darwin has no equivalent.
        package static let reservedPrefixes = ["com.apple.system.", "org.notifybus.system."]

        package init(of name: String) {
            var name = name
            self = name.withUTF8 { Scope(of: UnsafeRawBufferPointer($0)) }
        }

        /// Bytes, as notify(3) compares them: `hasPrefix` on a String would compare canonical forms. One by one, as a
        /// literal that is posted comes here each time: generic code takes a third of the time of a whole post.
        init(of name: UnsafeRawBufferPointer) {
            func begins(with prefix: StaticString) -> Bool {
                guard name.count >= prefix.utf8CodeUnitCount else { return false }
                for index in 0..<prefix.utf8CodeUnitCount where name[index] != prefix.utf8Start[index] { return false }
                return true
            }
            if begins(with: "self.") {
                self = .process
            } else if begins(with: "com.apple.system.") || begins(with: "org.notifybus.system.") {
                self = .reserved
            } else if begins(with: "user.uid.") {
                let digits = name.dropFirst("user.uid.".utf8.count).prefix { $0 != UInt8(ascii: ".") }
                let text = String(decoding: digits, as: UTF8.self)
                // Each user has one spelling: `user.uid.+7` and `user.uid.007` belong to no user.
                let number = UInt32(text).flatMap { String($0) == text ? $0 : nil }
                self = .owned(by: number)
            } else {
                self = .ordinary
            }
        }

        /// Whether to accept a post by this user.
        package func isOpen(to user: UInt32) -> Bool {
            guard case .owned(let owner) = self else { return true }
            return user == 0 || user == owner
        }
    }
}

extension NotifyName: ExpressibleByStringLiteral {
    /// One that is not a valid name is a programming error, and ends the program with a message.
    package init(stringLiteral text: String) {
        do throws(NotifyBusError) {
            // Not `NotifyName(text)` with a literal, which would recurse.
            try self.init(text)
        } catch {
            fatalError("“\(text)” is not a valid name. \(error)")
        }
    }
}

extension NotifyName {
    /// Whether the name has line feeds or other control characters, of ASCII or of ISO 6429.
    package var hasControlCharacters: Bool { string.hasControlCharacters }
}

extension String {
    package var hasControlCharacters: Bool {
        unicodeScalars.contains { $0.value < 0x20 || (0x7f..<0xa0).contains($0.value) }
    }
}

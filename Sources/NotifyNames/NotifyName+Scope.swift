// SPDX-License-Identifier: Apache-2.0

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
                // Each user has one spelling: `user.uid.+7` and `user.uid.007` belong to nobody.
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

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
        private static let ownedPrefix = "user.uid."

        package init(of name: String) {
            // Bytes, as notify(3) compares them: `hasPrefix` on a String would compare canonical forms.
            if name.utf8.starts(with: Scope.processPrefix.utf8) {
                self = .process
            } else if Scope.reservedPrefixes.contains(where: { name.utf8.starts(with: $0.utf8) }) {
                self = .reserved
            } else if name.utf8.starts(with: Scope.ownedPrefix.utf8) {
                let digits = name.utf8.dropFirst(Scope.ownedPrefix.utf8.count).prefix { $0 != UInt8(ascii: ".") }
                let number = String(digits).flatMap { UInt32($0) }
                // Each user has one spelling: `user.uid.+7` and `user.uid.007` belong to nobody.
                let isCanonical = number.map { String($0).utf8.elementsEqual(digits) } ?? false
                self = .owned(by: isCanonical ? number : nil)
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

// SPDX-License-Identifier: Apache-2.0

extension NotifyName {
    /// Who may post a name, and how far it travels.
    @usableFromInline
    package enum Scope: Equatable, Sendable {
        /// Everyone, to everyone on the bus.
        case ordinary
        /// `com.apple.system.…`, `org.notifybus.system.…`: on a path of its own, so that a bus policy can deny it.
        case reserved
        /// `user.uid.N…`: believed only from user N and root; from root alone where N is not a user id (nil).
        case owned(by: UInt32?)
        /// `self.…`: never leaves the process.
        case process

        package static let processPrefix = "self."
        /// Darwin's own, and that of what Darwin has no name for.
        package static let reservedPrefixes = ["com.apple.system.", "org.notifybus.system."]
        private static let ownedPrefix = "user.uid."

        package init(of name: String) {
            // Literal bytes, as notify(3) compares them: `hasPrefix` on a String would compare canonical forms.
            if name.utf8.starts(with: Scope.processPrefix.utf8) {
                self = .process
            } else if Scope.reservedPrefixes.contains(where: { name.utf8.starts(with: $0.utf8) }) {
                self = .reserved
            } else if name.utf8.starts(with: Scope.ownedPrefix.utf8) {
                let digits = name.utf8.dropFirst(Scope.ownedPrefix.utf8.count).prefix { $0 != UInt8(ascii: ".") }
                let number = String(digits).flatMap { UInt32($0) }
                // One user, one spelling: `user.uid.+7`, `user.uid.007` belong to nobody.
                let isCanonical = number.map { String($0).utf8.elementsEqual(digits) } ?? false
                self = .owned(by: isCanonical ? number : nil)
            } else {
                self = .ordinary
            }
        }

        /// Whether a post by this user is to be believed.
        package func isOpen(to user: UInt32) -> Bool {
            guard case .owned(let owner) = self else { return true }
            return user == 0 || user == owner
        }
    }
}

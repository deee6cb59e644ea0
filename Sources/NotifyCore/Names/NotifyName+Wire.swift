// SPDX-License-Identifier: Apache-2.0

extension NotifyName {
    /// The name that a signal posts; nil unless path, interface and name fit each other.
    package init?(postedAt path: String, interface: String, text: UnsafeRawBufferPointer) {
        guard let name = try? NotifyName(utf8: text), WireFormat.path(for: name) == path,
            WireFormat.interface(for: name) == interface
        else { return nil }
        self = name
    }

    /// Whether only one user and root may post the name, so that the sender of a post must be looked at.
    package var hasOwner: Bool {
        if case .owned = storage.scope { true } else { false }
    }

    /// Whether a post by this user is to be believed.
    package func isOpen(to user: UInt32) -> Bool { storage.scope.isOpen(to: user) }

    /// Whether on the system bus only root may post the name.
    package var isReserved: Bool { storage.scope == .reserved }

    /// Whether posts of the name stay inside the process that makes them.
    package var staysInProcess: Bool { storage.scope == .process }
}

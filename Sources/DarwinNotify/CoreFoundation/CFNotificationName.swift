// SPDX-License-Identifier: Apache-2.0

/// The name of a notification.
///
/// Any string makes one. Whether it is a name that can be posted, 1 to 511 bytes without NUL, is found out when it is
/// used: ``CFNotificationCenter/onError``.
public struct CFNotificationName: RawRepresentable, Hashable, Sendable {
    /// The name as a string.
    public var rawValue: CFString

    /// Makes a name from a string.
    public init(rawValue: CFString) {
        self.rawValue = rawValue
    }

    /// Makes a name from a string.
    public init(_ rawValue: CFString) {
        self.rawValue = rawValue
    }
}

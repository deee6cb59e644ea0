// SPDX-License-Identifier: Apache-2.0

/// The name of a notification.
///
/// It can hold any string. Whether that is a valid name, 1 to 511 bytes without NUL, is only checked when it is used;
/// see ``CFNotificationCenter/onError``.
public struct CFNotificationName: RawRepresentable, Hashable, Sendable {
    /// The name as a string.
    public var rawValue: CFString

    /// Creates a name from a string.
    public init(rawValue: CFString) {
        self.rawValue = rawValue
    }

    /// Creates a name from a string.
    public init(_ rawValue: CFString) {
        self.rawValue = rawValue
    }
}

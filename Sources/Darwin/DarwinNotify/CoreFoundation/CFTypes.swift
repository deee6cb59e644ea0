// SPDX-License-Identifier: Apache-2.0

/// The string type of Core Foundation's functions.
///
/// On Apple's systems this is a class that `String` bridges to. There is no bridging on Linux, so here it is `String`
/// itself: `name as CFString` and `name as String` compile unchanged, with or without Foundation.
public typealias CFString = String

/// The dictionary type of Core Foundation's functions. The Darwin notify center carries none, the local one does.
public typealias CFDictionary = [AnyHashable: Any]

/// A set of flags of Core Foundation's functions.
public typealias CFOptionFlags = UInt

/// The integer type of Core Foundation's functions.
public typealias CFIndex = Int

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

/// What an observer requests while its program is in the background. The Darwin notify center ignores it.
///
/// It is an option of the distributed center of Apple's systems. The raw values are those of the C constants.
public enum CFNotificationSuspensionBehavior: CFIndex, Hashable, Sendable {
    /// Deliver nothing while in the background.
    case drop = 1
    /// Deliver the last notification of a name later.
    case coalesce = 2
    /// Deliver all notifications later.
    case hold = 3
    /// Deliver immediately even so.
    case deliverImmediately = 4
}

/// Deliver to programs in the background as well. The Darwin notify center ignores it.
public var kCFNotificationDeliverImmediately: CFOptionFlags { 1 << 0 }

/// Deliver in all login sessions. The Darwin notify center ignores it.
public var kCFNotificationPostToAllSessions: CFOptionFlags { 1 << 1 }

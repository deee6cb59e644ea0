// SPDX-License-Identifier: Apache-2.0

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

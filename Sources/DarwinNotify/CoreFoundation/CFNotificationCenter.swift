// SPDX-License-Identifier: Apache-2.0

// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// A notification center of Core Foundation. There is only one: ``CFNotificationCenterGetDarwinNotifyCenter()``.
public final class CFNotificationCenter: Hashable, Sendable {
    static let darwin = CFNotificationCenter()

    let observers = ObserverTable()

    private init() {}

    /// Whether both are the same center.
    public static func == (left: CFNotificationCenter, right: CFNotificationCenter) -> Bool {
        left === right
    }

    /// Feeds the identity of the center into a hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// The callback of an observer: a function, or a closure that captures nothing.
///
/// Its arguments are the center, the observer and the name as registered, and then nil for the object and for the
/// dictionary, as the Darwin notify center carries neither. It is called on the main queue, which is the main actor.
///
/// On Apple's systems this is a C function, which can't capture anything. Here the compiler does not enforce that; code
/// that must also compile there passes context through the observer.
public typealias CFNotificationCallback =
    @MainActor (CFNotificationCenter?, UnsafeMutableRawPointer?, CFNotificationName?, UnsafeRawPointer?, CFDictionary?)
    -> Void

/// The notification center that reaches all programs; always the same one.
///
/// These are the programs on the session bus, and they all interoperate, whether they use these functions,
/// `NotifyCenter` or the commands. The environment variable `NOTIFYBUS_ADDRESS` selects another bus: `system`, or a
/// D-Bus address.
///
/// This never fails: the bus is contacted when the center is first used.
///
/// The corresponding C function is `CFNotificationCenterGetDarwinNotifyCenter`.
public func CFNotificationCenterGetDarwinNotifyCenter() -> CFNotificationCenter! {
    .darwin
}

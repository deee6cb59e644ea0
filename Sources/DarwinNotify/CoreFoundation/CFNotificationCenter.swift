// SPDX-License-Identifier: Apache-2.0

// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// A notification center of Core Foundation. There is one here: ``CFNotificationCenterGetDarwinNotifyCenter()``.
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

/// What an observer gives to be called back: a closure that captures nothing, or a function.
///
/// Its arguments are the center, the observer as it was registered, the name as it was registered, and then nil for the
/// object and for the dictionary: the Darwin notify center carries neither. It is called on the main queue, which is the
/// main actor.
///
/// On Apple's systems this is a C function, which can capture nothing. Here the compiler does not see to that; code that
/// is to compile there too passes what it needs by the observer.
public typealias CFNotificationCallback =
    @MainActor (CFNotificationCenter?, UnsafeMutableRawPointer?, CFNotificationName?, UnsafeRawPointer?, CFDictionary?)
    -> Void

/// The notification center that reaches all programs; the same one each time.
///
/// They are programs on the session bus, and hear each other whether they use these functions, `NotifyCenter` or the
/// commands. The environment variable `NOTIFYBUS_ADDRESS` names another bus: `system`, or a D-Bus address.
///
/// This never fails: a bus is looked for when the center is first used.
///
/// The corresponding C function is `CFNotificationCenterGetDarwinNotifyCenter`.
public func CFNotificationCenterGetDarwinNotifyCenter() -> CFNotificationCenter! {
    .darwin
}

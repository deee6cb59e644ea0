// SPDX-License-Identifier: Apache-2.0

// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// A notification center of Core Foundation: ``CFNotificationCenterGetDarwinNotifyCenter()``, which reaches other
/// programs, ``CFNotificationCenterGetLocalCenter()``, which stays inside this one, or
/// ``CFNotificationCenterGetDistributedCenter()``, which is silent on Linux.
public final class CFNotificationCenter: Hashable, Sendable {
    static let darwin = CFNotificationCenter(DarwinBackend())
    static let local = CFNotificationCenter(LocalBackend())
    static let distributed = CFNotificationCenter(DistributedBackend())

    let backend: any CenterBackend

    private init(_ backend: any CenterBackend) {
        self.backend = backend
    }

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
/// Its arguments are the center, the observer, the name, the object and the dictionary. The Darwin notify center carries
/// neither of the last two, and calls on the main queue, which is the main actor. The local center calls on the thread
/// that posts, which its type does not say: a callback that uses the main actor should be posted to from there.
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

/// The notification center inside this program; always the same one.
///
/// A post calls the observers on the posting thread, in the order in which they were added, before it returns. It
/// carries an object and a dictionary. An observer with an object hears only posts by that object, and one without a
/// name hears all names. It has nothing in common with Foundation's `NotificationCenter.default`, as on Linux that
/// stands alone.
///
/// The corresponding C function is `CFNotificationCenterGetLocalCenter`.
public func CFNotificationCenterGetLocalCenter() -> CFNotificationCenter! {
    .local
}

/// A center that accepts everything and delivers nothing, so that code for it compiles and runs; always the same one.
///
/// Linux has no distributed center. The first observer or post is reported to ``CFNotificationCenter/onError``.
///
/// The corresponding C function is `CFNotificationCenterGetDistributedCenter`.
public func CFNotificationCenterGetDistributedCenter() -> CFNotificationCenter! {
    .distributed
}

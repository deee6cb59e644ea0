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

/// Observes a name: calls `callBack` for each notification posted from now on.
///
/// The Darwin notify center calls it on the main queue. When this returns, the bus has confirmed the registration. It can be called from any thread. Each call adds a
/// registration, and each registration is called back separately, even if all arguments are the same: remove the
/// observer before you add it again. The program's own posts are heard too.
///
/// The main queue must be running: `dispatchMain()`, Foundation's `RunLoop.main.run()`, and an asynchronous `main` all
/// ensure that. While it is not, up to 4,096 notifications of a name are queued, and further ones are coalesced.
///
/// If there is no bus, ``CFNotificationCenter/onError`` is called, and the registration is completed once there is one.
/// If the name is invalid, it is called as well, and nothing is registered.
///
/// The corresponding C function is `CFNotificationCenterAddObserver`.
///
/// - Parameters:
///   - center: one of the centers.
///   - observer: identifies the observer, and is passed to `callBack`. It is not retained: remove the observer before
///     what it points to goes away. If it is nil, the registration can't be removed.
///   - callBack: the function to call. Must not be nil.
///   - name: the name to observe. For the local center nil means all names; for the Darwin notify center it must not be
///     nil.
///   - object: the object whose posts are observed, for the local center; nil means all. Otherwise ignored.
///   - suspensionBehavior: ignored.
@preconcurrency
public func CFNotificationCenterAddObserver(
    _ center: CFNotificationCenter!,
    _ observer: UnsafeRawPointer!,
    _ callBack: CFNotificationCallback!,
    _ name: CFString!,
    _ object: UnsafeRawPointer!,
    _ suspensionBehavior: CFNotificationSuspensionBehavior
) {
    let function: StaticString = "CFNotificationCenterAddObserver"
    guard let center else { return Reporter.report(.missing("a center"), by: function) }
    guard let callBack else { return Reporter.report(.missing("a callback"), by: function) }
    let failure = center.backend.add(CFObserver(observer, callBack), name, UInt(bitPattern: object))
    if let failure { Reporter.report(failure, by: function) }
}

/// Removes all registrations of an observer for a name, or for all names.
///
/// When this returns on the main queue, the observer's callbacks for the name will not be called again. On any other
/// thread, the main queue may be about to call one or be in the middle of it, so what the observer points to must
/// outlive that. This never waits for a callback, and can be called from one.
///
/// The corresponding C function is `CFNotificationCenterRemoveObserver`.
///
/// - Parameters:
///   - center: one of the centers.
///   - observer: the observer as it was added; it must not be nil.
///   - name: the name; nil means all names.
///   - object: the object as it was added, for the local center; nil means all. Otherwise ignored.
public func CFNotificationCenterRemoveObserver(
    _ center: CFNotificationCenter!,
    _ observer: UnsafeRawPointer!,
    _ name: CFNotificationName!,
    _ object: UnsafeRawPointer!
) {
    let function: StaticString = "CFNotificationCenterRemoveObserver"
    guard let center else { return Reporter.report(.missing("a center"), by: function) }
    guard let observer else { return Reporter.report(.missing("an observer"), by: function) }
    center.backend.remove(UInt(bitPattern: observer), name?.rawValue, UInt(bitPattern: object))
}

/// Removes all registrations of an observer; those of other observers remain.
///
/// The same as ``CFNotificationCenterRemoveObserver(_:_:_:_:)`` without a name.
///
/// The corresponding C function is `CFNotificationCenterRemoveEveryObserver`.
///
/// - Parameters:
///   - center: one of the centers.
///   - observer: the observer as it was added; it must not be nil.
public func CFNotificationCenterRemoveEveryObserver(_ center: CFNotificationCenter!, _ observer: UnsafeRawPointer!) {
    let function: StaticString = "CFNotificationCenterRemoveEveryObserver"
    guard let center else { return Reporter.report(.missing("a center"), by: function) }
    guard let observer else { return Reporter.report(.missing("an observer"), by: function) }
    center.backend.remove(UInt(bitPattern: observer), nil, 0)
}

/// Posts a notification to every observer of its name: with the Darwin notify center in all programs on the bus,
/// including this one, and with the local center in this one.
///
/// It can be called from any thread. The first post to the Darwin notify center opens the connection; later ones never
/// block. It is not an error if the name has no observer. Errors, such as no bus, no name, or a name that belongs to
/// someone else, are reported to ``CFNotificationCenter/onError``, and nothing is posted.
///
/// The corresponding C function is `CFNotificationCenterPostNotification`.
///
/// - Parameters:
///   - center: one of the centers.
///   - name: the name; it must not be nil.
///   - object: who posts, for the local center; the Darwin notify center ignores it.
///   - userInfo: carried by the local center; the Darwin notify center ignores it.
///   - deliverImmediately: ignored.
public func CFNotificationCenterPostNotification(
    _ center: CFNotificationCenter!,
    _ name: CFNotificationName!,
    _ object: UnsafeRawPointer!,
    _ userInfo: CFDictionary!,
    _ deliverImmediately: Bool
) {
    post(name, object, userInfo, with: center, by: "CFNotificationCenterPostNotification")
}

/// Posts a notification to every observer of its name.
///
/// The same as ``CFNotificationCenterPostNotification(_:_:_:_:_:)``.
///
/// The corresponding C function is `CFNotificationCenterPostNotificationWithOptions`.
///
/// - Parameters:
///   - center: one of the centers.
///   - name: the name; it must not be nil.
///   - object: who posts, for the local center; the Darwin notify center ignores it.
///   - userInfo: carried by the local center; the Darwin notify center ignores it.
///   - options: ignored.
public func CFNotificationCenterPostNotificationWithOptions(
    _ center: CFNotificationCenter!,
    _ name: CFNotificationName!,
    _ object: UnsafeRawPointer!,
    _ userInfo: CFDictionary!,
    _ options: CFOptionFlags
) {
    post(name, object, userInfo, with: center, by: "CFNotificationCenterPostNotificationWithOptions")
}

private func post(
    _ name: CFNotificationName?,
    _ object: UnsafeRawPointer?,
    _ userInfo: CFDictionary?,
    with center: CFNotificationCenter?,
    by function: StaticString
) {
    guard let center else { return Reporter.report(.missing("a center"), by: function) }
    guard let name else { return Reporter.report(.missing("a name"), by: function) }
    if let failure = center.backend.post(name, object, userInfo) { Reporter.report(failure, by: function) }
}

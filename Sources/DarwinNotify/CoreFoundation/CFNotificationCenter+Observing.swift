// SPDX-License-Identifier: Apache-2.0

// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

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

// SPDX-License-Identifier: Apache-2.0

// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// Posts a notification to every observer of its name: with the Darwin notify center in all programs on the bus,
/// including this one, and with the local center in this one.
///
/// It can be called from any thread. The first post to the Darwin notify center opens the connection; later ones never
/// block. It is not an error if
/// nobody observes the name. Errors, such as no bus, no name, or a name that belongs to someone else, are reported to
/// ``CFNotificationCenter/onError``, and nothing is posted.
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

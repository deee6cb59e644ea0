// SPDX-License-Identifier: Apache-2.0

// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import NotifyBus

/// Posts a notification to every observer of its name, in all programs on the bus, including this one.
///
/// It can be called from any thread. The first post opens the connection; later ones never block. It is not an error if
/// nobody observes the name. Errors, such as no bus, no name, or a name that belongs to someone else, are reported to
/// ``CFNotificationCenter/onError``, and nothing is posted.
///
/// The corresponding C function is `CFNotificationCenterPostNotification`.
///
/// - Parameters:
///   - center: the Darwin notify center.
///   - name: the name; it must not be nil.
///   - object: ignored.
///   - userInfo: ignored.
///   - deliverImmediately: ignored.
public func CFNotificationCenterPostNotification(
    _ center: CFNotificationCenter!,
    _ name: CFNotificationName!,
    _ object: UnsafeRawPointer!,
    _ userInfo: CFDictionary!,
    _ deliverImmediately: Bool
) {
    post(name, with: center, by: "CFNotificationCenterPostNotification")
}

/// Posts a notification to every observer of its name, in all programs on the bus, including this one.
///
/// The same as ``CFNotificationCenterPostNotification(_:_:_:_:_:)``.
///
/// The corresponding C function is `CFNotificationCenterPostNotificationWithOptions`.
///
/// - Parameters:
///   - center: the Darwin notify center.
///   - name: the name; it must not be nil.
///   - object: ignored.
///   - userInfo: ignored.
///   - options: ignored.
public func CFNotificationCenterPostNotificationWithOptions(
    _ center: CFNotificationCenter!,
    _ name: CFNotificationName!,
    _ object: UnsafeRawPointer!,
    _ userInfo: CFDictionary!,
    _ options: CFOptionFlags
) {
    post(name, with: center, by: "CFNotificationCenterPostNotificationWithOptions")
}

private func post(_ name: CFNotificationName?, with center: CFNotificationCenter?, by function: StaticString) {
    guard center != nil else { return Reporter.report(.missing("a center"), by: function) }
    guard let name else { return Reporter.report(.missing("a name"), by: function) }
    do throws(NotifyBusError) {
        try DarwinCenter.shared.post(NotifyName(name.rawValue))
    } catch {
        Reporter.report(.refused(name, error), by: function)
    }
}

// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// Two observers of one name, one of which is removed.
private final class Listener {
    let title: String

    init(_ title: String) { self.title = title }

    var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    func listen(for name: CFString) {
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            pointer,
            { (center, observer, name, object, userInfo) in
                let listener = Unmanaged<Listener>.fromOpaque(observer!).takeUnretainedValue()
                say("\(listener.title) \(name!.rawValue as String)")
                if name == CFNotificationName("com.example.door.closed" as CFString) { finish() }
            },
            name,
            nil,
            CFNotificationSuspensionBehavior.deliverImmediately
        )
    }
}

nonisolated(unsafe) private var listeners: [Listener] = []

func removalByObserver() {
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    let first = Listener("first")
    let second = Listener("second")
    listeners = [first, second]
    for listener in listeners { listener.listen(for: "com.example.door.opened" as CFString) }
    first.listen(for: "com.example.door.closed" as CFString)
    CFNotificationCenterRemoveObserver(
        center,
        second.pointer,
        CFNotificationName("com.example.door.opened" as CFString),
        nil
    )
    CFNotificationCenterPostNotification(
        center,
        CFNotificationName(rawValue: "com.example.door.opened" as CFString),
        nil,
        nil,
        true
    )
    CFNotificationCenterPostNotification(
        center,
        CFNotificationName(rawValue: "com.example.door.closed" as CFString),
        nil,
        nil,
        true
    )
}

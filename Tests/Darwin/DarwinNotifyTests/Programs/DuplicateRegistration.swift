// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// Adds the same observer twice, as happens if a screen registers each time it is shown: two callbacks.
private let tick = "com.example.tick" as CFString
private let end = "com.example.end" as CFString

func duplicateRegistration() {
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    let callback: CFNotificationCallback = { _, _, name, _, _ in
        say("heard \(name!.rawValue)")
        if name!.rawValue == end { finish() }
    }
    for _ in 1...2 {
        CFNotificationCenterAddObserver(center, nil, callback, tick, nil, .deliverImmediately)
    }
    CFNotificationCenterAddObserver(center, nil, callback, end, nil, .deliverImmediately)
    CFNotificationCenterPostNotification(center, CFNotificationName(tick), nil, nil, true)
    CFNotificationCenterPostNotification(center, CFNotificationName(end), nil, nil, true)
}

// SPDX-License-Identifier: Apache-2.0

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// Posts with every possible argument, of which only the name arrives.
func postingWithUserInfo() {
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    CFNotificationCenterAddObserver(
        center,
        nil,
        { center, observer, name, object, userInfo in
            let isBare = observer == nil && object == nil && userInfo == nil
            say("\(name?.rawValue ?? "") \(isBare ? "and nothing else" : "and more")")
            if name == CFNotificationName("com.example.sent.with.options" as CFString) { finish() }
        },
        "com.example.sent" as CFString,
        nil,
        .deliverImmediately
    )
    CFNotificationCenterAddObserver(
        center,
        nil,
        { _, _, name, object, userInfo in
            say("\(name!.rawValue as String) \((userInfo as? [String: Any])?.count ?? 0)")
            finish()
        },
        "com.example.sent.with.options" as CFString,
        nil,
        .deliverImmediately
    )
    let details: [String: Any] = ["volume": 7, "title": "something"]
    var object = 7
    CFNotificationCenterPostNotification(
        center,
        CFNotificationName("com.example.sent" as CFString),
        &object,
        details as CFDictionary,
        false
    )
    CFNotificationCenterPostNotificationWithOptions(
        center,
        CFNotificationName("com.example.sent.with.options" as CFString),
        nil,
        ["volume": 7] as CFDictionary,
        kCFNotificationDeliverImmediately | kCFNotificationPostToAllSessions
    )
}

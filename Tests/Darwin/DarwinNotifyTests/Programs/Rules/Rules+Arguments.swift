// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify

extension Rules {
    /// Ignored arguments are ignored, and the others are passed on.
    static func arguments() {
        let behaviors: [CFNotificationSuspensionBehavior] = [.drop, .coalesce, .hold, .deliverImmediately]
        for (number, behavior) in zip(1..., behaviors) {
            CFNotificationCenterAddObserver(
                center,
                observer(number),
                { center, observer, name, object, userInfo in
                    let isBare = object == nil && userInfo == nil
                    say("\(UInt(bitPattern: observer)) \(name!.rawValue) \(center == Rules.center) \(isBare)")
                },
                "name" as CFString,
                Rules.observer(100 + number),
                behavior
            )
        }
        endWith()
        let name = CFNotificationName("name" as CFString)
        CFNotificationCenterPostNotification(center, name, observer(200), ["a": 1] as CFDictionary, false)
        CFNotificationCenterPostNotificationWithOptions(
            center,
            name,
            observer(300),
            ["a": 1] as CFDictionary,
            kCFNotificationPostToAllSessions
        )
        post("end")
    }

    /// A nil observer is allowed, but can't be removed.
    static func nilObserver() {
        CFNotificationCenter.onError = { _ in }
        observe("name", by: 0) { say($0) }
        remove(0, "name")
        remove(0, nil)
        CFNotificationCenterRemoveEveryObserver(center, nil)
        endWith()
        post("name")
        post("end")
    }

    /// Without a name nothing is observed or posted, and nothing else goes wrong.
    static func nilName() {
        CFNotificationCenter.onError = { say("\($0)") }
        CFNotificationCenterAddObserver(
            center,
            observer(1),
            { _, _, name, _, _ in say("heard \(String(describing: name))") },
            nil,
            nil,
            .deliverImmediately
        )
        CFNotificationCenterAddObserver(center, observer(1), nil, "name" as CFString, nil, .deliverImmediately)
        endWith()
        CFNotificationCenterPostNotification(center, nil, nil, nil, true)
        CFNotificationCenterPostNotificationWithOptions(center, nil, nil, nil, 0)
        post("name")
        post("end")
    }
}

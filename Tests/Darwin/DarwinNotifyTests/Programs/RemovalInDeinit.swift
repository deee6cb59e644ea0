// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// An object that observes several names until it is released.
private final class Session {
    private var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
    private let title: String

    init(_ title: String, _ names: [String]) {
        self.title = title
        for name in names {
            CFNotificationCenterAddObserver(
                CFNotificationCenterGetDarwinNotifyCenter(),
                pointer,
                { _, observer, name, _, _ in
                    Unmanaged<Session>.fromOpaque(observer!).takeUnretainedValue().heard(name!.rawValue as String)
                },
                name as CFString,
                nil,
                .deliverImmediately
            )
        }
    }

    deinit {
        CFNotificationCenterRemoveEveryObserver(CFNotificationCenterGetDarwinNotifyCenter(), pointer)
        say("\(title) is gone")
    }

    private func heard(_ name: String) {
        say("\(title) \(name)")
        if name == "com.example.logged.out" { finish() }
    }
}

nonisolated(unsafe) private var sessions: [Session] = []

func removalInDeinit() {
    let names = ["com.example.logged.in", "com.example.logged.out"]
    sessions = [Session("first", names), Session("second", names)]
    sessions.removeFirst()
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    for name in names {
        CFNotificationCenterPostNotification(center, CFNotificationName(name as CFString), nil, nil, true)
    }
}

// SPDX-License-Identifier: Apache-2.0

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// One registration for a whole program, passed on to any number of closures by the name.
private final class FanOut: @unchecked Sendable {
    static let shared = FanOut()

    private var handlers: [CFNotificationName: [() -> Void]] = [:]

    func on(_ name: CFNotificationName, do handler: @escaping () -> Void) {
        if handlers[name] == nil { register(name) }
        handlers[name, default: []].append(handler)
    }

    private func register(_ name: CFNotificationName) {
        let callback: CFNotificationCallback = { center, observer, name, object, userInfo in
            guard let name = name else { return }
            FanOut.shared.handlers[name]?.forEach { $0() }
        }
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            Unmanaged<FanOut>.passUnretained(self).toOpaque(),
            callback,
            name.rawValue,
            nil,
            .deliverImmediately
        )
    }
}

func fanOut() {
    let name = CFNotificationName(rawValue: "com.example.fan.out" as CFString)
    FanOut.shared.on(name) { say("one") }
    FanOut.shared.on(name) { say("two") }
    FanOut.shared.on(name) { finish() }
    CFNotificationCenterPostNotification(CFNotificationCenterGetDarwinNotifyCenter(), name, nil, nil, true)
}

// SPDX-License-Identifier: Apache-2.0

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// A shared center with closures, each with a token that ends its observation.
final class DarwinNotifications: @unchecked Sendable {
    static let shared = DarwinNotifications()

    private let center = CFNotificationCenterGetDarwinNotifyCenter()

    private init() {}

    func post(_ name: String) {
        CFNotificationCenterPostNotification(center, CFNotificationName(rawValue: name as CFString), nil, nil, true)
    }

    func observe(_ name: String, callback: @escaping () -> Void) -> Token {
        let token = Token(center, callback)
        let pointer = UnsafeRawPointer(Unmanaged.passUnretained(token.closure).toOpaque())
        CFNotificationCenterAddObserver(center, pointer, DarwinNotifications.callback, name as CFString, nil, .coalesce)
        return token
    }

    private static let callback: CFNotificationCallback = { _, observer, _, _, _ in
        guard let observer else { return }
        Unmanaged<Closure>.fromOpaque(observer).takeUnretainedValue().call()
    }

    final class Closure {
        let call: () -> Void
        init(_ call: @escaping () -> Void) { self.call = call }
    }

    final class Token {
        fileprivate let closure: Closure
        private let center: CFNotificationCenter?

        fileprivate init(_ center: CFNotificationCenter?, _ callback: @escaping () -> Void) {
            self.center = center
            closure = Closure(callback)
        }

        func cancel() {
            CFNotificationCenterRemoveEveryObserver(center, Unmanaged.passUnretained(closure).toOpaque())
        }

        deinit { cancel() }
    }
}

nonisolated(unsafe) private var tokens: [DarwinNotifications.Token] = []

func observationToken() {
    let notifications = DarwinNotifications.shared
    tokens.append(notifications.observe("com.example.paused") { say("paused") })
    tokens.append(
        notifications.observe("com.example.resumed") {
            say("resumed")
            finish()
        }
    )
    let cancelled = notifications.observe("com.example.paused") { say("cancelled, and called") }
    cancelled.cancel()
    _ = notifications.observe("com.example.paused") { say("let go of, and called") }
    notifications.post("com.example.paused")
    notifications.post("com.example.resumed")
}

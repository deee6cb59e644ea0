// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// A model on the main actor, where the callback already runs.
@MainActor
final class Model {
    private(set) var changes = 0

    func start() {
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            Unmanaged.passUnretained(self).toOpaque(),
            { _, observer, name, _, _ in
                guard let observer else { return }
                let model = Unmanaged<Model>.fromOpaque(observer).takeUnretainedValue()
                MainActor.assumeIsolated { model.changed(name) }
            },
            "com.example.model.changed" as CFString,
            nil,
            .deliverImmediately
        )
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            Unmanaged.passUnretained(self).toOpaque(),
            { _, observer, _, _, _ in
                // Inside the main actor the closure is the main actor's.
                Unmanaged<Model>.fromOpaque(observer!).takeUnretainedValue().report()
            },
            "com.example.model.done" as CFString,
            nil,
            .deliverImmediately
        )
    }

    private func changed(_ name: CFNotificationName?) {
        changes += 1
    }

    private func report() {
        say("\(changes)")
        finish()
    }
}

@MainActor private let model = Model()

@MainActor func mainActorModel() {
    model.start()
    Task.detached {
        let center = CFNotificationCenterGetDarwinNotifyCenter()
        for _ in 1...5 {
            let changed = CFNotificationName("com.example.model.changed" as CFString)
            CFNotificationCenterPostNotification(center, changed, nil, nil, true)
        }
        CFNotificationCenterPostNotification(
            center,
            CFNotificationName("com.example.model.done" as CFString),
            nil,
            nil,
            true
        )
    }
}

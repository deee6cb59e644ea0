// SPDX-License-Identifier: Apache-2.0

import notify

#if WITH_FOUNDATION
    import Foundation
#endif

/// An object that is its own Core Foundation observer, identified by its pointer.
final class ModelChanges {
    private var count = 0
    private let name: String

    init(name: String) {
        self.name = name
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            Unmanaged.passUnretained(self).toOpaque(),
            { _, observer, name, _, _ in
                guard let observer, let name else { return }
                let changes = Unmanaged<ModelChanges>.fromOpaque(observer).takeUnretainedValue()
                changes.heard(name.rawValue as String)
            },
            name as CFString,
            nil,
            .deliverImmediately
        )
    }

    deinit {
        CFNotificationCenterRemoveEveryObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private func heard(_ name: String) {
        count += 1
        say("\(name) \(count)")
        if count == 2 { exit(0) }
    }
}

@MainActor private var changes: ModelChanges?

@MainActor func observeWithUnmanagedSelf() {
    changes = ModelChanges(name: "com.example.unmanaged")
    notify_post("com.example.unmanaged")
    notify_post("com.example.unmanaged")
}

// SPDX-License-Identifier: Apache-2.0

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// The textbook observer: the object is passed to the callback as its context.
final class Watcher {
    private var count = 0

    init(name: String) {
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            Unmanaged.passUnretained(self).toOpaque(),
            { _, observer, name, _, _ in
                guard let observer = observer, let name = name else { return }
                let watcher = Unmanaged<Watcher>.fromOpaque(observer).takeUnretainedValue()
                watcher.heard(name.rawValue as String)
            },
            name as CFString,
            nil,
            .deliverImmediately
        )
    }

    deinit {
        CFNotificationCenterRemoveObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            Unmanaged.passUnretained(self).toOpaque(),
            nil,
            nil
        )
    }

    private func heard(_ name: String) {
        count += 1
        say("\(count) \(name)")
    }
}

nonisolated(unsafe) private var watcher: Watcher?

func observerWithContext() {
    watcher = Watcher(name: "com.example.settings.changed")
    say("ready")
}

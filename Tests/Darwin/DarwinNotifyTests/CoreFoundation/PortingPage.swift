// SPDX-License-Identifier: Apache-2.0

// This is the example of Documentation/porting.md, word for word; a test compares them.

import Foundation

#if !canImport(Darwin)
    import DarwinNotify
#endif

final class SettingsWatcher {
    init() {
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            Unmanaged.passUnretained(self).toOpaque(),
            { _, observer, name, _, _ in
                guard let observer, let name else { return }
                let watcher = Unmanaged<SettingsWatcher>.fromOpaque(observer).takeUnretainedValue()
                watcher.settingsChanged(name.rawValue as String)
            },
            "com.example.settings.changed" as CFString,
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

    func settingsChanged(_ name: String) {
        print("reading the settings again:", name)
    }

    static func post() {
        CFNotificationCenterPostNotification(
            CFNotificationCenterGetDarwinNotifyCenter(),
            CFNotificationName("com.example.settings.changed" as CFString),
            nil,
            nil,
            true
        )
    }
}

// SPDX-License-Identifier: Apache-2.0

// Imports Core Foundation by name, and runs its run loop.
import CoreFoundation

func withCoreFoundation() {
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    let name = "com.example.with-core-foundation" as CFString
    CFNotificationCenterAddObserver(
        center,
        nil,
        { _, _, name, _, _ in
            print("heard", name?.rawValue ?? "nothing")
            finish()
        },
        name,
        nil,
        .deliverImmediately
    )
    CFNotificationCenterPostNotificationWithOptions(
        center,
        CFNotificationName(name),
        nil,
        nil,
        kCFNotificationDeliverImmediately | kCFNotificationPostToAllSessions
    )
    CFRunLoopRun()
}

// SPDX-License-Identifier: Apache-2.0

import DarwinNotify

/// A program with an asynchronous main function, which runs the main queue while it waits.
@main
enum AsyncMain {
    static func main() async {
        let center = CFNotificationCenterGetDarwinNotifyCenter()
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let box = Unmanaged.passRetained(Box(continuation))
            CFNotificationCenterAddObserver(
                center,
                box.toOpaque(),
                { center, observer, name, _, _ in
                    guard let observer else { return }
                    MainActor.assertIsolated()
                    CFNotificationCenterRemoveEveryObserver(center, observer)
                    print("heard", name?.rawValue ?? "nothing")
                    Unmanaged<Box>.fromOpaque(observer).takeRetainedValue().continuation.resume()
                },
                "com.example.awaited" as CFString,
                nil,
                .deliverImmediately
            )
            let name = CFNotificationName("com.example.awaited" as CFString)
            CFNotificationCenterPostNotification(center, name, nil, nil, true)
        }
    }

    private final class Box {
        let continuation: CheckedContinuation<Void, Never>
        init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }
    }
}

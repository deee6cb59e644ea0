// SPDX-License-Identifier: Apache-2.0

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// The notifications of a name as an asynchronous sequence.
enum DarwinStream {
    private final class Box: Sendable {
        let continuation: AsyncStream<String>.Continuation
        init(_ continuation: AsyncStream<String>.Continuation) { self.continuation = continuation }
    }

    static func notifications(named name: String) -> AsyncStream<String> {
        AsyncStream { continuation in
            let box = Box(continuation)
            let address = UInt(bitPattern: Unmanaged.passRetained(box).toOpaque())
            CFNotificationCenterAddObserver(
                CFNotificationCenterGetDarwinNotifyCenter(),
                UnsafeRawPointer(bitPattern: address),
                { _, observer, name, _, _ in
                    guard let observer, let name else { return }
                    let box = Unmanaged<Box>.fromOpaque(observer).takeUnretainedValue()
                    box.continuation.yield(name.rawValue as String)
                },
                name as CFString,
                nil,
                .deliverImmediately
            )
            continuation.onTermination = { _ in
                Task { @MainActor in
                    guard let pointer = UnsafeMutableRawPointer(bitPattern: address) else { return }
                    CFNotificationCenterRemoveEveryObserver(CFNotificationCenterGetDarwinNotifyCenter(), pointer)
                    Unmanaged<Box>.fromOpaque(pointer).release()
                }
            }
        }
    }
}

func streamWrapper() {
    Task {
        let stream = DarwinStream.notifications(named: "com.example.sample")
        let name = CFNotificationName("com.example.sample" as CFString)
        for _ in 1...3 {
            CFNotificationCenterPostNotification(CFNotificationCenterGetDarwinNotifyCenter(), name, nil, nil, true)
        }
        var count = 0
        for await name in stream {
            count += 1
            say("\(count) \(name)")
            if count == 3 { break }
        }
        finish()
    }
}

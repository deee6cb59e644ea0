// SPDX-License-Identifier: Apache-2.0

import notify

#if WITH_FOUNDATION
    import Foundation
#endif

/// A wrapper in the style of Combine, with a protocol in place of Combine's.
protocol NamePublisher {
    func sink(_ receive: @escaping (String) -> Void) -> NameSubscription
}

final class NameSubscription {
    private var token: Int32

    init(token: Int32) { self.token = token }

    func cancel() {
        guard notify_is_valid_token(token) else { return }
        notify_cancel(token)
        token = NOTIFY_TOKEN_INVALID
    }

    deinit { cancel() }
}

struct DarwinNotificationPublisher: NamePublisher {
    let name: String
    let queue: DispatchQueue

    func sink(_ receive: @escaping (String) -> Void) -> NameSubscription {
        var token = NOTIFY_TOKEN_INVALID
        let name = name
        let handler: notify_handler_t = { _ in receive(name) }
        let status = name.withCString { notify_register_dispatch($0, &token, queue, handler) }
        if status != UInt32(NOTIFY_STATUS_OK) { say("status \(status)") }
        return NameSubscription(token: token)
    }
}

func printThreeFromPublisher() {
    let queue = DispatchQueue(label: "com.example.publisher", qos: .userInitiated)
    let heard = DispatchSemaphore(value: 0)
    let subscription = DarwinNotificationPublisher(name: "com.example.publisher", queue: queue).sink { name in
        say(name)
        heard.signal()
    }
    for _ in 0..<3 {
        notify_post("com.example.publisher")
        heard.wait()
    }
    subscription.cancel()
}

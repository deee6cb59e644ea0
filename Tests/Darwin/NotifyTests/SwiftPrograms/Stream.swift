// SPDX-License-Identifier: Apache-2.0

import notify

#if WITH_FOUNDATION
    import Foundation
#endif

/// A name as an asynchronous sequence.
func notifications(named name: String) -> AsyncStream<Void> {
    AsyncStream { continuation in
        var token: Int32 = NOTIFY_TOKEN_INVALID
        let status = notify_register_dispatch(name, &token, DispatchQueue.global()) { _ in
            continuation.yield()
        }
        guard status == NOTIFY_STATUS_OK else { return continuation.finish() }
        continuation.onTermination = { [token] _ in notify_cancel(token) }
    }
}

func printStream() async {
    let stream = notifications(named: "com.example.stream")
    say("ready")
    var count = 0
    for await _ in stream {
        count += 1
        say("element \(count)")
        if count == 3 { break }
    }
}

// SPDX-License-Identifier: Apache-2.0

import notify

#if WITH_FOUNDATION
    import Foundation
#endif

/// The wrapper that most programs use: a registration that ends with its object.
final class DarwinObserver {
    private var token: Int32 = NOTIFY_TOKEN_INVALID

    init?(name: String, queue: DispatchQueue = .main, handler: @escaping () -> Void) {
        let status = notify_register_dispatch(name, &token, queue) { _ in
            handler()
        }
        guard status == NOTIFY_STATUS_OK else { return nil }
    }

    func pause() { notify_suspend(token) }
    func go() { notify_resume(token) }

    deinit {
        if notify_is_valid_token(token) { notify_cancel(token) }
    }
}

/// Hears two of three posts as one, and nothing after its observer is released.
func runObserver() {
    let queue = DispatchQueue(label: "com.example.observer")
    let heard = DispatchSemaphore(value: 0)
    var observer = DarwinObserver(name: "com.example.observer", queue: queue) {
        say("heard")
        heard.signal()
    }
    notify_post("com.example.observer")
    heard.wait()
    observer?.pause()
    notify_post("com.example.observer")
    notify_post("com.example.observer")
    // A second registration of the name hears them both, so the first would have.
    let fence = DispatchSemaphore(value: 0)
    var token: Int32 = 0
    notify_register_dispatch("com.example.fence", &token, queue) { _ in fence.signal() }
    notify_post("com.example.fence")
    fence.wait()
    say("resume")
    observer?.go()
    heard.wait()
    observer = nil
    notify_post("com.example.observer")
    notify_post("com.example.fence")
    fence.wait()
    say("end")
}

/// Prints a line at once, also into a pipe.
func say(_ text: some CustomStringConvertible) {
    print(text)
    fflush(nil)
}

// SPDX-License-Identifier: Apache-2.0
//! Runs its callbacks on a dispatch queue, one at a time.
// snippet.hide

import Dispatch
import NotifyBus

let center = NotifyCenter.session
let heard = DispatchSemaphore(value: 0)
// snippet.show
let queue = DispatchQueue(label: "com.example.reload")
let observation = try center.addObserver(for: "com.example.config.changed", queue: queue) { name in
    print("reloading because of", name)
    // snippet.hide
    heard.signal()
    // snippet.show
}
// snippet.hide
try center.post("com.example.config.changed")
heard.wait()
observation.cancel()

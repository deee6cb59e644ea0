// SPDX-License-Identifier: Apache-2.0
//! Observes a name, posts it, and exits when it arrives.
// snippet.hide

import Dispatch
// snippet.show
import NotifyBus

let center = NotifyCenter.session
// snippet.hide
let heard = DispatchSemaphore(value: 0)
// snippet.show
let observation = try center.addObserver(for: "com.example.backup.done") { name in
    print("heard", name)
    // snippet.hide
    heard.signal()
    // snippet.show
}
try center.post("com.example.backup.done")
// snippet.hide
heard.wait()
observation.cancel()

// SPDX-License-Identifier: Apache-2.0
//! Runs its callbacks on a dispatch queue, one at a time.
// snippet.hide

import Dispatch
import NotifyBus

let center = NotifyCenter.session
let (heard, continuation) = AsyncStream.makeStream(of: Void.self)
// snippet.show
let queue = DispatchQueue(label: "com.example.reload")
let observation = try await center.addObserver(for: "com.example.config.changed", queue: queue) { name in
    print("reloading because of", name)
    // snippet.hide
    continuation.yield()
    // snippet.show
}
// snippet.hide
try center.post("com.example.config.changed")
for await _ in heard { break }
observation.cancel()

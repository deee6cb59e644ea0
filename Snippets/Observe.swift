// SPDX-License-Identifier: Apache-2.0
//! Observes a name, posts it, and exits when it arrives.

import NotifyBus

let center = NotifyCenter.session
// snippet.hide
let (heard, continuation) = AsyncStream.makeStream(of: Void.self)
// snippet.show
let observation = try await center.addObserver(for: "com.example.backup.done") { name in
    print("heard", name)
    // snippet.hide
    continuation.yield()
    // snippet.show
}
try center.post("com.example.backup.done")
// snippet.hide
for await _ in heard { break }
observation.cancel()

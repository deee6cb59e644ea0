// SPDX-License-Identifier: Apache-2.0
//! Waits for notifications in a task.
// snippet.hide

import NotifyBus

let center = NotifyCenter.session
// snippet.show
let ticks = try await center.notifications(for: "com.example.tick")
// Every post from here on is in the sequence, even one made before the loop starts.
// snippet.hide
try center.post("com.example.tick")
// snippet.show
for await name in ticks {
    print("heard", name)
    // snippet.hide
    break
    // snippet.show
}

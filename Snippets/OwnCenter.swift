// SPDX-License-Identifier: Apache-2.0
//! Uses a center of its own, learns when the bus goes away, and distinguishes errors.
// snippet.hide

import NotifyBus

// snippet.show
let center = NotifyCenter(bus: .session)
let task = Task {
    var wasAway = false
    for await change in center.connectionChanges() {
        if let error = change.error {
            print("the bus is away:", error)
            wasAway = true
        } else if wasAway {
            print("the bus is back; something may have changed in the meantime")
        }
    }
}
do {
    // Posting connects by itself, and what is posted without a bus waits for one. Who wants to know at once asks first.
    try await center.connect()
    try center.post("com.example.backup.done")
} catch NotifyBusError.Code.noBus, NotifyBusError.Code.disconnected {
    print("nobody can be told now")
} catch {
    print("not posted:", error)
}
// snippet.hide
try await center.flush()
task.cancel()
print("posted", center.statistics.posted)

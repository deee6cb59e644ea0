// SPDX-License-Identifier: Apache-2.0
//! Uses a center of its own, learns when the bus goes away, and distinguishes errors.
// snippet.hide

import NotifyBus

// snippet.show
let center = NotifyCenter(bus: .session) { change in
    switch change {
    case .disconnected(let error): print("the bus is away:", error)
    case .reconnected: print("the bus is back; something may have changed in the meantime")
    }
}
do throws(NotifyBusError) {
    try center.post("com.example.backup.done")
} catch {
    switch error.code {
    case .noBus, .disconnected: print("the name cannot be posted:", error)
    default: throw error
    }
}
// snippet.hide
try center.flush()
print("posted", center.statistics.posted)

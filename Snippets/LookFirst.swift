// SPDX-License-Identifier: Apache-2.0
//! Misses no change to a file that others write: observes first, then looks, and looks again at each notification.
// snippet.hide

import Glibc
import NotifyBus

let center = NotifyCenter.session

func isDone() -> Bool { access("/proc/self/exe", F_OK) == 0 }

// snippet.show
try await center.withNotifications(for: "com.example.backup.done") { changes in
    // From here on no change is missed.
    if isDone() { return }
    for await _ in changes where isDone() { break }
}
print("the backup is there")

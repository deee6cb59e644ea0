// SPDX-License-Identifier: Apache-2.0
//! A whole program: observes a name, posts it, and exits when it arrives.

import NotifyBus

let center = NotifyCenter.session
let notifications = try await center.notifications(for: "com.example.backup.done")
try center.post("com.example.backup.done")
for await name in notifications {
    print("heard", name)
    break
}

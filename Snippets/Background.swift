// SPDX-License-Identifier: Apache-2.0
//! Reports to the agent that this program is in the background, and then in the foreground again.
// snippet.hide

import NotifyBus

let center = NotifyCenter.session
// snippet.show
do throws(NotifyBusError) {
    try await center.lifecycle.report(.background)
    // From here on no observer of this program hears anything.
    print(center.lifecycle.state)
    try await center.lifecycle.report(.foreground)
} catch {
    guard error.code == .noAgent else { throw error }
    // Without an agent every program is in the foreground.
}
print(center.lifecycle.state)

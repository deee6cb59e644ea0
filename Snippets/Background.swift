// SPDX-License-Identifier: Apache-2.0
//! Tells the agent that nobody looks at this program, and that somebody does again.
// snippet.hide

import NotifyBus

let center = NotifyCenter.session
// snippet.show
do throws(NotifyBusError) {
    try center.lifecycle.report(.background)
    // No observer of this program hears anything from here on.
    print(center.lifecycle.state)
    try center.lifecycle.report(.foreground)
} catch {
    guard error.code == .noAgent else { throw error }
    // Without an agent every program is in the foreground.
}
print(center.lifecycle.state)

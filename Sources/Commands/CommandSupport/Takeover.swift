// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// After an agent has started, observers may still be about to register with it. Those count an agent that does not answer
/// for that long as absent.
package enum Takeover {
    package static let limit = Duration.seconds(2)

    /// Whether an agent that says when it started, in seconds since 1970, is as new as that.
    package static func mayLast(since start: UInt64?) -> Bool {
        guard let start else { return false }
        let age = Clock.timeOfDay / 1_000_000_000 - Int64(clamping: start)
        return (0...limit.components.seconds).contains(age)
    }

    /// Waits before the agent is asked again.
    package static func pause() { poll(nil, 0, 20) }
}

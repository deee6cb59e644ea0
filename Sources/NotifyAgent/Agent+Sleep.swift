// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Delays sleep or shutdown, so that programs can prepare for it.
struct SleepDelay {
    /// The minimum time for observers, in nanoseconds.
    private static let shortest: Int64 = 1_000_000_000
    /// How long before the end of logind's own limit the delay is released, in nanoseconds.
    private static let margin: Int64 = 500_000_000
    /// More than any configuration says, in microseconds.
    private static let maximum: UInt64 = 3_600_000_000

    /// What was posted.
    let name: NotifyName
    /// The earliest and the latest time to continue, in nanoseconds of the monotonic clock.
    let earliest, latest: Int64
    /// Whether the bus has routed the post, so that it is known what starts.
    var isPassedOn = false

    init(_ logins: Logins, now: Int64) {
        name = LoginEvents.ending(logins)
        let longest = Int64(min(logins.longestDelay, SleepDelay.maximum)) * 1_000
        latest = now + max(0, longest - SleepDelay.margin)
        earliest = min(now + SleepDelay.shortest, latest)
    }
}

extension Agent {
    /// Programs have been notified that the machine goes to sleep, or shuts down.
    func beginDelay(_ logins: Logins) {
        let delay = SleepDelay(logins, now: MonotonicTime.now.nanoseconds)
        sleepDelay = delay
        alarms.set(.sleep, at: delay.earliest)
        // The agent hears its own posts, in order with the bus's replies.
        link.callBus("GetId", []) { [self] _ in
            guard sleepDelay?.latest == delay.latest else { return }
            sleepDelay?.isPassedOn = true
            endDelayIfOver()
        }
    }

    /// Lets the machine continue once all programs that were started for it have exited, and the others have had their
    /// time.
    func endDelayIfOver() {
        guard let delay = sleepDelay else { return }
        let now = MonotonicTime.now.nanoseconds
        guard now >= delay.earliest else { return }
        let isBusy = !delay.isPassedOn || launching?.isAtWork(on: [delay.name]) == true
        if isBusy, now < delay.latest { return alarms.set(.sleep, at: delay.latest) }
        sleepDelay = nil
        sources.letSleep()
    }
}

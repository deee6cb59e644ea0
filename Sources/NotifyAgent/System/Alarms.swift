// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// Who wants to be woken when: the loop has one timer for all.
struct Alarms {
    enum Owner {
        case coordinator, naps, events, launching, relaying
        /// The machine may go to sleep.
        case sleep
    }

    private let loop: EventLoop
    private let ring: () -> Void
    private var times: [Owner: Int64] = [:]
    private var timer: Int?

    init(on loop: EventLoop, ring: @escaping () -> Void) { (self.loop, self.ring) = (loop, ring) }

    /// A later call with the same owner replaces an earlier one.
    mutating func set(_ owner: Owner, at time: Int64?) {
        times[owner] = time
        arm()
    }

    /// It rings.
    ///
    /// - Returns: whose time has come.
    mutating func take(now: Int64) -> [Owner] {
        let due = times.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
        for owner in due { times[owner] = nil }
        arm()
        return due
    }

    private mutating func arm() {
        loop.cancel(timer)
        timer = times.values.min().map { loop.at(MonotonicTime(nanoseconds: $0), ring) }
    }
}

/// The time of day.
enum WallClock {
    /// Seconds since 1970.
    static var now: UInt64 { UInt64(max(0, time(nil))) }
}

extension Timestamp {
    static var now: Timestamp { Timestamp(nanoseconds: MonotonicTime.now.nanoseconds, wallClock: WallClock.now) }
}

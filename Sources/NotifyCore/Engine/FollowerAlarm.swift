// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Wakes the follower: at once, or when the leader's callbacks take too long.
struct FollowerAlarm: ~Copyable {
    /// How long the callbacks for what has arrived may keep the leader from reading, in nanoseconds.
    static let timeLimit: Int64 = 5_000_000

    private let timer: TimerDescriptor
    /// Whether it will ring. It may ring although this is false, but never the other way round.
    private let isSet = Atomic(false)

    init() throws(NotifyBusError) {
        timer = try TimerDescriptor()
    }

    /// Lets the alarm ring if the leader's callbacks, the first of which begins now, take too long.
    @inline(__always)
    func setUnlessSet() {
        if !isSet.load(ordering: .sequentiallyConsistent) { set(after: FollowerAlarm.timeLimit) }
    }

    /// Lets the alarm ring after this many nanoseconds.
    func set(after delay: Int64) {
        isSet.store(true, ordering: .sequentiallyConsistent)
        timer.fire(afterNanoseconds: delay)
    }

    /// Lets the alarm ring now.
    func ring() { set(after: 1) }

    /// Turns the alarm off.
    ///
    /// - Returns: whether it was set.
    @inline(__always)
    func stop() -> Bool {
        guard isSet.load(ordering: .relaxed) else { return false }
        // In this order: the follower may be setting it meanwhile, and does so in the reverse order.
        timer.stop()
        isSet.store(false, ordering: .sequentiallyConsistent)
        return true
    }

    /// Sleeps until the alarm rings.
    func sleep() {
        timer.sleep()
        isSet.store(false, ordering: .sequentiallyConsistent)
    }
}

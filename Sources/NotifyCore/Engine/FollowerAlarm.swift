// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Wakes the follower: at once, or when a callback of the leader takes too long.
///
/// It hardly ever rings. While posts follow each other closely, the leader puts it off from time to time; otherwise it
/// turns it off before it sleeps.
struct FollowerAlarm: ~Copyable {
    /// How long a callback may keep the leader from reading, in nanoseconds.
    static let patience: Int64 = 5_000_000
    /// When the leader puts it off or, if posts arrive less often than this, turns it off.
    private static let halfTime = patience / 2

    private let timer: TimerDescriptor
    /// Whether it will ring. It may ring although this is false, but never the other way round.
    private let isSet = Atomic(false)
    /// From when on the next callback puts it off, in nanoseconds of the monotonic clock; never if the follower is wanted
    /// at once.
    private let putsOffFrom = Atomic<Int64>(.max)

    init() throws(NotifyBusError) {
        timer = try TimerDescriptor()
    }

    // MARK: - For the leader

    /// Sees to it that the alarm rings if the callback that begins now takes too long.
    ///
    /// - Parameter batch: when the leader started to work on what has arrived, in nanoseconds of the monotonic clock.
    @inline(__always)
    func watch(batch: Int64) {
        if isSet.load(ordering: .sequentiallyConsistent), batch < putsOffFrom.load(ordering: .relaxed) { return }
        set(after: FollowerAlarm.patience, batch: batch)
    }

    /// Turns the alarm off, unless posts follow each other so closely that putting it off takes less.
    ///
    /// - Parameter interval: how long after the batch before the latest one arrived, in nanoseconds.
    /// - Returns: whether it was turned off.
    @inline(__always)
    func rest(interval: Int64) -> Bool {
        guard interval > FollowerAlarm.halfTime, isSet.load(ordering: .relaxed),
            putsOffFrom.load(ordering: .relaxed) != .max
        else { return false }
        // In this order: the follower may be setting it meanwhile, and does so in the reverse order.
        timer.stop()
        isSet.store(false, ordering: .sequentiallyConsistent)
        return true
    }

    // MARK: - For the follower

    /// Sleeps until the alarm rings.
    func sleep() {
        timer.sleep()
        isSet.store(false, ordering: .sequentiallyConsistent)
    }

    // MARK: - For both

    /// Lets the alarm ring after this many nanoseconds, unless it is put off.
    func set(after delay: Int64, batch: Int64) {
        isSet.store(true, ordering: .sequentiallyConsistent)
        putsOffFrom.store(batch + FollowerAlarm.halfTime, ordering: .relaxed)
        timer.fire(afterNanoseconds: delay)
    }

    /// Lets the alarm ring now.
    func ring() {
        isSet.store(true, ordering: .sequentiallyConsistent)
        putsOffFrom.store(.max, ordering: .relaxed)
        timer.fire(afterNanoseconds: 1)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The two threads of a center. At any moment one leads and the other follows (the leader/followers pattern).
///
/// The leader reads and also runs callbacks, so that a post is delivered without a second wake-up. The bus must be read
/// whatever the callbacks do: if those for what has arrived take longer than `FollowerAlarm.timeLimit`, the follower takes
/// the lead. The thread in the callback follows once it has run the callbacks that were left to it.
final class EngineThreads: Sendable {
    /// What a thread is doing. Only the thread itself changes it, except that the follower may turn `callback` into
    /// `replaced`, by which it takes the lead.
    private enum Phase {
        static let following: UInt8 = 0
        static let leading: UInt8 = 1
        static let callback: UInt8 = 2
        static let replaced: UInt8 = 3
    }

    private final class Member: Sendable {
        let phase: Atomic<UInt8>
        init(_ phase: UInt8) { self.phase = Atomic(phase) }
    }

    let wakeDescriptor: WakeDescriptor
    private let alarm: FollowerAlarm
    private let members = (Member(Phase.leading), Member(Phase.following))
    private let threads = Monitor<[EngineThread]>([])
    private let stopping = Atomic(false)
    /// Whether a callback of the leader is about to wait for something that only reading can bring.
    private let mustTakeLead = Atomic(false)
    /// When the leader started to work on the latest arrivals, in nanoseconds of the monotonic clock.
    private let batchStart = Atomic<Int64>(0)

    var isStopping: Bool { stopping.load(ordering: .acquiring) }

    init() throws(NotifyBusError) {
        wakeDescriptor = try WakeDescriptor()
        alarm = try FollowerAlarm()
    }

    /// Starts both threads. The first one leads.
    ///
    /// - Parameter lead: reads until the thread with this number no longer leads and has no callbacks left to run.
    func start(lead: @escaping @Sendable (Int) -> Void) throws(NotifyBusError) {
        let run: @Sendable (Int) -> Void = { [self] number in
            if number == 0 { lead(number) }
            while follow(number) { lead(number) }
        }
        // The lock makes a thread that looks itself up wait until the list is complete.
        try threads.withLock { threads throws(NotifyBusError) in
            for number in 0...1 {
                do throws(NotifyBusError) {
                    threads.append(try EngineThread { run(number) })
                } catch {
                    stop(threads)
                    throw error
                }
            }
        }
    }

    /// Stops the threads, and waits for them unless the caller is one of them.
    func stop(waits: Bool) {
        stop(
            threads.withLock { threads in
                defer { threads = [] }
                return threads
            },
            waits: waits
        )
    }

    private func stop(_ threads: [EngineThread], waits: Bool = true) {
        stopping.store(true, ordering: .sequentiallyConsistent)
        wakeDescriptor.signal()
        alarm.ring()
        for thread in threads { if waits { thread.finish() } else { thread.detach() } }
    }

    /// Must be called before the caller waits for something that reading brings: if the caller is a callback of the
    /// leader, the follower takes the lead.
    func prepareToWait() {
        let current = threads.withLock { threads in threads.firstIndex { $0.isCurrent } }
        guard let current, member(current).phase.load(ordering: .relaxed) == Phase.callback else { return }
        mustTakeLead.store(true, ordering: .sequentiallyConsistent)
        alarm.ring()
    }

    /// Notes that the leader starts to work on what has arrived, and returns the time.
    func beginBatch() -> Int64 {
        let now = MonotonicTime.now.nanoseconds
        batchStart.store(now, ordering: .relaxed)
        return now
    }

    /// Notes that the leader has finished the batch.
    @inline(__always)
    func endBatch() {
        // What stops the threads may have rung just before the alarm was turned off.
        if alarm.stop(), stopping.load(ordering: .sequentiallyConsistent) { alarm.ring() }
    }

    /// Runs a callback on the leader.
    ///
    /// - Returns: whether the thread still leads. If not, it must not touch anything that belongs to the leader.
    @inline(__always)
    func runWhileLeading(_ number: Int, _ callback: () -> Void) -> Bool {
        let phase = member(number)
        phase.phase.store(Phase.callback, ordering: .sequentiallyConsistent)
        // In this order, so that either the follower, which checks the phase after the alarm has rung, sees the callback,
        // or the alarm is seen as not set.
        alarm.setUnlessSet()
        callback()
        return phase.phase.compareExchange(
            expected: Phase.callback,
            desired: Phase.leading,
            ordering: .acquiringAndReleasing
        ).exchanged
    }

    // MARK: - Following

    private func member(_ number: Int) -> Member {
        number == 0 ? members.0 : members.1
    }

    /// Sleeps until it is this thread's turn to lead, helping the leader in the meantime.
    ///
    /// - Returns: false if the threads are to exit.
    private func follow(_ number: Int) -> Bool {
        let other = member(1 - number)
        member(number).phase.store(Phase.following, ordering: .sequentiallyConsistent)
        // The leader may have started a callback, and set the alarm, before this thread was ready to be woken.
        while !isStopping {
            alarm.sleep()
            guard other.phase.load(ordering: .sequentiallyConsistent) == Phase.callback else { continue }
            let elapsed = MonotonicTime.now.nanoseconds - batchStart.load(ordering: .relaxed)
            guard elapsed >= FollowerAlarm.timeLimit || mustTakeLead.load(ordering: .sequentiallyConsistent) else {
                alarm.set(after: FollowerAlarm.timeLimit - elapsed)
                continue
            }
            mustTakeLead.store(false, ordering: .sequentiallyConsistent)
            let takesLead = other.phase.compareExchange(
                expected: Phase.callback,
                desired: Phase.replaced,
                ordering: .acquiringAndReleasing
            ).exchanged
            if takesLead {
                member(number).phase.store(Phase.leading, ordering: .sequentiallyConsistent)
                return true
            }
        }
        return false
    }
}

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

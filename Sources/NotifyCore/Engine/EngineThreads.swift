// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The two threads of a center. At any moment one leads and the other follows (the leader/followers pattern).
///
/// The leader reads and also runs callbacks, so that a post is delivered without a second wake-up. The bus must be read
/// whatever the callbacks do, so the follower helps in two cases:
///
/// - A callback takes longer than `FollowerAlarm.patience`. Then the follower takes the lead, and the thread in the
///   callback follows once it has run the callbacks that were left to it.
/// - More has arrived than the leader can deliver in its share of time (`LeadersShare`). Then the leader only reads, and
///   the follower runs the callbacks until none is left.
///
/// While the leader sleeps, any other thread may borrow the lead to exchange some messages with the bus itself, which
/// saves waking the leader and being woken by it. The leader has it recalled if it wakes up for another reason.
final class EngineThreads: Sendable {
    /// What a thread is doing. Only the thread itself changes it, except that the follower may turn `callback` into
    /// `replaced`, by which it takes the lead, and that a thread that borrows it may turn `asleep` into `lent`, and back.
    private enum Phase {
        static let following: UInt8 = 0
        static let leading: UInt8 = 1
        static let callback: UInt8 = 2
        static let replaced: UInt8 = 3
        static let asleep: UInt8 = 4
        static let lent: UInt8 = 5
        /// The leader waits for the thread that has borrowed the lead.
        static let recalled: UInt8 = 6
    }

    private final class Member: Sendable {
        let phase: Atomic<UInt8>
        init(_ phase: UInt8) { self.phase = Atomic(phase) }
    }

    /// What the threads do when it is their turn.
    struct Duties: Sendable {
        /// Reads until the thread with this number no longer leads and has no callbacks left to run.
        let lead: @Sendable (Int) -> Void
        /// Runs callbacks until none is left.
        let deliver: @Sendable () -> Void
    }

    let wakeDescriptor: WakeDescriptor
    let sleep: LeaderSleep
    /// Woken when the lead is returned to a leader that waits for it.
    private let returned = Monitor(())
    private let alarm: FollowerAlarm
    private let members = (Member(Phase.leading), Member(Phase.following))
    private let threads = Monitor<[EngineThread]>([])
    private let stopping = Atomic(false)
    /// Whether a callback of the leader is about to wait for something that only reading can bring.
    private let mustTakeLead = Atomic(false)
    /// Whether the leader has handed the callbacks over to the follower.
    private let mustDeliver = Atomic(false)
    /// When the leader started to work on the latest arrivals, in nanoseconds of the monotonic clock.
    private let batchStart = Atomic<Int64>(0)

    var isStopping: Bool { stopping.load(ordering: .acquiring) }

    init() throws(NotifyBusError) {
        wakeDescriptor = try WakeDescriptor()
        sleep = try LeaderSleep(wakeDescriptor)
        alarm = try FollowerAlarm()
    }

    /// Starts both threads. The first one leads.
    func start(_ duties: Duties) throws(NotifyBusError) {
        let run: @Sendable (Int) -> Void = { [self] number in
            if number == 0 { duties.lead(number) }
            while follow(number, duties) { duties.lead(number) }
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

    /// Notes that the leader has finished the batch that arrived this long after the previous one, in nanoseconds.
    @inline(__always)
    func endBatch(interval: Int64) {
        // What stops the threads may have let the alarm ring just before it was turned off.
        if alarm.rest(interval: interval), stopping.load(ordering: .sequentiallyConsistent) { alarm.ring() }
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
        alarm.watch(batch: batchStart.load(ordering: .relaxed))
        callback()
        return phase.phase.compareExchange(
            expected: Phase.callback,
            desired: Phase.leading,
            ordering: .acquiringAndReleasing
        ).exchanged
    }

    // MARK: - Borrowing the lead

    /// Lets other threads borrow the lead while the leader sleeps.
    @inline(__always)
    func lend<Result>(_ number: Int, while sleep: () -> Result) -> Result {
        let phase = member(number)
        phase.phase.store(Phase.asleep, ordering: .releasing)
        let result = sleep()
        let isMine = phase.phase.compareExchange(
            expected: Phase.asleep,
            desired: Phase.leading,
            ordering: .acquiring
        ).exchanged
        if !isMine { recall(number) }
        return result
    }

    private func recall(_ number: Int) {
        let phase = member(number)
        while true {
            let isRecalled = phase.phase.compareExchange(
                expected: Phase.lent,
                desired: Phase.recalled,
                ordering: .acquiring
            ).exchanged
            if isRecalled { break }
            // It was given back in the meantime, and may be borrowed again.
            let isBack = phase.phase.compareExchange(
                expected: Phase.asleep,
                desired: Phase.leading,
                ordering: .acquiring
            ).exchanged
            if isBack { return }
        }
        // The thread that has borrowed the lead gives it back when this is readable.
        wakeDescriptor.signal()
        _ = returned.wait(until: nil) { _ in phase.phase.load(ordering: .acquiring) == Phase.leading ? true : nil }
    }

    /// Borrows the lead if the leader sleeps. The caller must return it soon, at the latest once `wakeDescriptor` is
    /// readable, and must not run callbacks meanwhile.
    ///
    /// - Returns: the number of the leader; nil if it doesn't sleep.
    func borrowLead() -> Int? {
        if isStopping { return nil }
        return (0...1).first { number in
            member(number).phase.compareExchange(
                expected: Phase.asleep,
                desired: Phase.lent,
                ordering: .acquiring
            ).exchanged
        }
    }

    func returnLead(to number: Int) {
        let phase = member(number)
        let isAsleep = phase.phase.compareExchange(
            expected: Phase.lent,
            desired: Phase.asleep,
            ordering: .releasing
        ).exchanged
        if isAsleep { return }
        returned.withLock { _ in phase.phase.store(Phase.leading, ordering: .releasing) }
        returned.wakeAll()
    }

    // MARK: - Helping the leader

    /// Makes the follower run callbacks until none is left.
    func leaveDelivery() {
        mustDeliver.store(true, ordering: .sequentiallyConsistent)
        alarm.ring()
    }

    private func member(_ number: Int) -> Member {
        number == 0 ? members.0 : members.1
    }

    /// Sleeps until it is this thread's turn to lead, helping the leader in the meantime.
    ///
    /// - Returns: false if the threads are to exit.
    private func follow(_ number: Int, _ duties: Duties) -> Bool {
        let other = member(1 - number)
        member(number).phase.store(Phase.following, ordering: .sequentiallyConsistent)
        // The leader may have started a callback, and set the alarm, before this thread was ready to be woken.
        while !isStopping {
            alarm.sleep()
            if mustDeliver.exchange(false, ordering: .sequentiallyConsistent) {
                duties.deliver()
                continue
            }
            guard other.phase.load(ordering: .sequentiallyConsistent) == Phase.callback else { continue }
            let batch = batchStart.load(ordering: .relaxed)
            let elapsed = MonotonicTime.now.nanoseconds - batch
            guard elapsed >= FollowerAlarm.patience || mustTakeLead.load(ordering: .sequentiallyConsistent) else {
                alarm.set(after: FollowerAlarm.patience - elapsed, batch: batch)
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

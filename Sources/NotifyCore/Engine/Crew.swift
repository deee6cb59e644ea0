// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The two threads of a center, of which one reads at any moment.
///
/// The thread that reads also runs callbacks, so that a post is delivered without a second wake-up. While a callback
/// runs, nobody reads; if it takes longer than `patience`, the other thread, the stand-in, takes over reading, and the
/// first becomes the stand-in when it has run the callbacks that were left for it. So the socket is always drained,
/// whatever the callbacks do, and a delivery costs no switch between threads as long as they are quick.
final class Crew: Sendable {
    /// How long a callback may keep its thread from reading, in nanoseconds.
    static let patience: Int64 = 5_000_000

    /// What a thread is doing. Only the thread itself changes it, except that the stand-in may turn `callback` into
    /// `relieved`, which is how it takes over reading.
    private enum Phase {
        static let standingIn: UInt8 = 0
        static let reading: UInt8 = 1
        static let callback: UInt8 = 2
        static let relieved: UInt8 = 3
    }

    private final class Member: Sendable {
        let phase: Atomic<UInt8>
        init(_ phase: UInt8) { self.phase = Atomic(phase) }
    }

    let wakeDescriptor: WakeDescriptor
    private let timer: TimerDescriptor
    private let members = (Member(Phase.reading), Member(Phase.standingIn))
    private let threads = Monitor<[EngineThread]>([])
    private let stopping = Atomic(false)
    /// Whether the timer will wake the stand-in.
    private let isTimerArmed = Atomic(false)
    /// Whether a callback is about to wait for something that only reading can bring.
    private let wantsRelief = Atomic(false)
    /// When the reading thread began to work on what arrived last, in nanoseconds of the monotonic clock.
    private let batchStart = Atomic<Int64>(0)

    var isStopping: Bool { stopping.load(ordering: .acquiring) }

    init() throws(NotifyBusError) {
        wakeDescriptor = try WakeDescriptor()
        timer = try TimerDescriptor()
    }

    /// Starts both threads. The first one calls `read` at once, with its number; whichever thread comes to read later
    /// calls it again. `read` returns when its thread no longer reads, and has no callbacks left to run.
    func start(_ read: @escaping @Sendable (Int) -> Void) throws(NotifyBusError) {
        let run: @Sendable (Int) -> Void = { [self] number in
            if number == 0 { read(number) }
            while standIn(number) { read(number) }
        }
        // The lock keeps a thread that asks who it is waiting until the list is complete.
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

    /// Ends the threads, and waits for them unless the caller is one of them.
    func stop() {
        stop(
            threads.withLock { threads in
                defer { threads = [] }
                return threads
            }
        )
    }

    private func stop(_ threads: [EngineThread]) {
        stopping.store(true, ordering: .sequentiallyConsistent)
        wakeDescriptor.signal()
        timer.fire(afterNanoseconds: 1)
        for thread in threads { thread.finish() }
    }

    /// To be called before the caller waits for something that the reading thread brings: if the caller is inside a
    /// callback, the other thread reads from now on.
    func prepareToWait() {
        guard threads.withLock({ threads in threads.contains { $0.isCurrent } }) else { return }
        wantsRelief.store(true, ordering: .sequentiallyConsistent)
        timer.fire(afterNanoseconds: 1)
    }

    /// Notes that the reading thread begins to work on what has arrived, and gives the time.
    func beginBatch() -> Int64 {
        let now = MonotonicTime.now.nanoseconds
        batchStart.store(now, ordering: .relaxed)
        return now
    }

    /// Runs a callback on the reading thread.
    ///
    /// - Returns: whether the thread still reads. If not, it must not touch anything that belongs to the reader.
    @inline(__always)
    func runWhileReading(_ number: Int, _ callback: () -> Void) -> Bool {
        let phase = member(number)
        phase.phase.store(Phase.callback, ordering: .sequentiallyConsistent)
        // In this order, so that either the stand-in, which disarms first and looks at the phase then, sees the
        // callback, or the timer is seen as not armed.
        if !isTimerArmed.load(ordering: .sequentiallyConsistent) { armTimer(Crew.patience) }
        callback()
        return phase.phase.compareExchange(
            expected: Phase.callback,
            desired: Phase.reading,
            ordering: .acquiringAndReleasing
        ).exchanged
    }

    private func armTimer(_ delay: Int64) {
        isTimerArmed.store(true, ordering: .sequentiallyConsistent)
        timer.fire(afterNanoseconds: delay)
    }

    private func member(_ number: Int) -> Member {
        number == 0 ? members.0 : members.1
    }

    /// Sleeps until it is this thread's turn to read.
    ///
    /// - Returns: false when the crew is to stop.
    private func standIn(_ number: Int) -> Bool {
        let other = member(1 - number)
        member(number).phase.store(Phase.standingIn, ordering: .sequentiallyConsistent)
        // The other thread may have begun a callback, and armed the timer, before this one was ready to be woken.
        while !isStopping {
            timer.sleep()
            isTimerArmed.store(false, ordering: .sequentiallyConsistent)
            guard other.phase.load(ordering: .sequentiallyConsistent) == Phase.callback else { continue }
            let elapsed = MonotonicTime.now.nanoseconds - batchStart.load(ordering: .relaxed)
            guard elapsed >= Crew.patience || wantsRelief.load(ordering: .sequentiallyConsistent) else {
                armTimer(Crew.patience - elapsed)
                continue
            }
            wantsRelief.store(false, ordering: .sequentiallyConsistent)
            let relieves = other.phase.compareExchange(
                expected: Phase.callback,
                desired: Phase.relieved,
                ordering: .acquiringAndReleasing
            ).exchanged
            if relieves {
                member(number).phase.store(Phase.reading, ordering: .sequentiallyConsistent)
                return true
            }
        }
        return false
    }
}

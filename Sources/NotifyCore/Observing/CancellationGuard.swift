// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Ensures that no callback of an observer runs once its cancellation has returned. A part of the observer: an object of
/// its own would be one more for each.
struct CancellationGuard: ~Copyable, Sendable {
    private static let running: UInt8 = 1
    private static let cancelled: UInt8 = 2

    /// Where threads wait for the end of a callback that they cancelled: this is rare, so all share one. For each waiting
    /// thread, the observer whose callback it waits for.
    private static let endings = Monitor<[UInt: Observer]>([:])

    private let state = Atomic<UInt8>(0)
    /// The thread that is running the callback, so that a callback can cancel its own observer.
    private let runner = Atomic<UInt>(0)

    var isCancelled: Bool { state.load(ordering: .acquiring) & CancellationGuard.cancelled != 0 }

    /// Runs `body`, unless the observer was cancelled. One thread at a time.
    ///
    /// - Returns: whether it ran.
    @inline(__always)
    func run(_ body: () -> Void) -> Bool {
        guard
            state.compareExchange(expected: 0, desired: CancellationGuard.running, ordering: .acquiringAndReleasing)
                .exchanged
        else { return false }
        runner.store(pthread_self(), ordering: .relaxed)
        body()
        runner.store(0, ordering: .relaxed)
        let before = state.bitwiseAnd(~CancellationGuard.running, ordering: .acquiringAndReleasing).oldValue
        if before & CancellationGuard.cancelled != 0 {
            // Taking the lock orders this with a waiter that has just checked and is about to sleep.
            CancellationGuard.endings.withLock { _ in }
            CancellationGuard.endings.wakeAll()
        }
        return true
    }

    /// Prevents further callbacks, and waits for one that is running, unless it is the caller.
    ///
    /// - Parameters:
    ///   - observer: the observer that this is a part of.
    ///   - waits: whether to wait.
    /// - Returns: whether one is still running, which was not waited for.
    func cancel(_ observer: Observer, waits: Bool) -> Bool {
        let before = state.bitwiseOr(CancellationGuard.cancelled, ordering: .acquiringAndReleasing).oldValue
        guard before & CancellationGuard.running != 0, runner.load(ordering: .relaxed) != pthread_self() else {
            return false
        }
        guard waits else { return true }
        let thread = pthread_self()
        let _: Void? = CancellationGuard.endings.wait(until: nil) { waiting in
            guard isRunning else {
                waiting[thread] = nil
                return ()
            }
            if waiting[thread] == nil {
                waiting[thread] = observer
                assert(
                    !CancellationGuard.isCircle(of: waiting, from: thread),
                    "Callbacks in several threads cancel each other's observations, and would wait for ever."
                )
            }
            return nil
        }
        return false
    }

    private var isRunning: Bool { state.load(ordering: .acquiring) & CancellationGuard.running != 0 }

    /// Whether a thread waits for a callback that waits, perhaps by way of others, for a callback of that thread.
    ///
    /// That is exact. Each thread has noted which callback it runs before it could note here that it waits, under the
    /// lock, so the last thread of a circle sees all of it. And one whose callback has ended in the meantime, though it is
    /// yet to be woken, is passed over: a cancelled observer's callback does not run again.
    private static func isCircle(of waiting: [UInt: Observer], from start: UInt) -> Bool {
        var thread = start
        for _ in waiting {
            guard let observer = waiting[thread], observer.cancellation.isRunning else { return false }
            thread = observer.cancellation.runner.load(ordering: .relaxed)
            if thread == start { return true }
        }
        return false
    }
}

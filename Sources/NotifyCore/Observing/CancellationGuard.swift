// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Ensures that no callback of an observer runs once its cancellation has returned. A part of the observer: an object of
/// its own would be one more for each.
struct CancellationGuard: ~Copyable, Sendable {
    private static let running: UInt8 = 1
    private static let cancelled: UInt8 = 2

    /// Where threads wait for the end of a callback that they cancelled: this is rare, so all share one.
    private static let endings = Monitor(())

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
    /// - Parameter waits: whether to wait.
    /// - Returns: whether one is still running, which was not waited for.
    func cancel(waits: Bool) -> Bool {
        let before = state.bitwiseOr(CancellationGuard.cancelled, ordering: .acquiringAndReleasing).oldValue
        guard before & CancellationGuard.running != 0, runner.load(ordering: .relaxed) != pthread_self() else {
            return false
        }
        guard waits else { return true }
        let _: Void? = CancellationGuard.endings.wait(until: nil) { _ in
            self.state.load(ordering: .acquiring) & CancellationGuard.running == 0 ? () : nil
        }
        return false
    }
}

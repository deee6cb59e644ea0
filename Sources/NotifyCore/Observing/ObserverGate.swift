// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Sees to it that no callback of an observer runs once its cancellation has returned.
final class ObserverGate: Sendable {
    private static let running: UInt8 = 1
    private static let closed: UInt8 = 2

    /// Where threads wait for the end of a callback that they cancelled: rare, so one for all gates.
    private static let endings = Monitor(())

    private let state = Atomic<UInt8>(0)
    /// The thread that runs the callback, so that a callback can cancel its own observer.
    private let runner = Atomic<UInt>(0)

    var isClosed: Bool { state.load(ordering: .acquiring) & ObserverGate.closed != 0 }

    /// Runs `body`, unless the gate is closed. One thread at a time.
    ///
    /// - Returns: whether it ran.
    @inline(__always)
    func pass(_ body: () -> Void) -> Bool {
        guard
            state.compareExchange(expected: 0, desired: ObserverGate.running, ordering: .acquiringAndReleasing)
                .exchanged
        else { return false }
        runner.store(pthread_self(), ordering: .relaxed)
        body()
        runner.store(0, ordering: .relaxed)
        let before = state.bitwiseAnd(~ObserverGate.running, ordering: .acquiringAndReleasing).oldValue
        if before & ObserverGate.closed != 0 {
            // Taking the lock orders this with a waiter that has just looked and is about to sleep.
            ObserverGate.endings.withLock { _ in }
            ObserverGate.endings.wakeAll()
        }
        return true
    }

    /// Closes the gate for ever and waits until no callback is inside, unless the caller is that callback.
    func close(waits: Bool) {
        let before = state.bitwiseOr(ObserverGate.closed, ordering: .acquiringAndReleasing).oldValue
        guard waits, before & ObserverGate.running != 0, runner.load(ordering: .relaxed) != pthread_self() else {
            return
        }
        let _: Void? = ObserverGate.endings.wait(until: nil) { _ in
            self.state.load(ordering: .acquiring) & ObserverGate.running == 0 ? () : nil
        }
    }
}

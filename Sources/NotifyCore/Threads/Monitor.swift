// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// State behind a mutex, and a condition to wait for a change of it.
///
/// `Synchronization.Mutex` has no condition; this one is used where a thread must wait.
///
/// Let the state be a struct of its own, not a bare dictionary or optional: for these Swift's runtime makes metadata at
/// the first use, and looks through all conformances of the program for it, which was a fifth of the start of a command.
///
/// `@unchecked Sendable`: `state` is reached only through `withLock` and `wait`, which hold the mutex.
package final class Monitor<State>: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    // A pointer, not a property: the mutex already excludes, so the run-time exclusivity check would only cost time.
    private let state: UnsafeMutablePointer<State>

    package init(_ initial: consuming State) {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        state = .allocate(capacity: 1)
        state.initialize(to: initial)
        initializeLocks()
    }

    private func initializeLocks() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        state.deinitialize(count: 1)
        state.deallocate()
        condition.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` with the lock held. `body` must not call back into this monitor.
    @inline(__always)
    package func withLock<Result, Failure: Error>(_ body: (inout State) throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state.pointee)
    }

    /// Runs `body` with the lock held, unless it is not to be had before the deadline.
    package func withLock<Result>(until deadline: MonotonicTime, _ body: (inout State) -> Result) -> Result? {
        var limit = deadline.timespec
        guard linux_lock_until(mutex, &limit) == 0 else { return nil }
        defer { pthread_mutex_unlock(mutex) }
        return body(&state.pointee)
    }

    /// Takes the lock before fork(2), so that the state is whole in the child; see pthread_atfork(3).
    package func lockForFork() {
        pthread_mutex_lock(mutex)
    }

    /// Gives the lock back in the parent.
    package func unlockAfterFork() {
        pthread_mutex_unlock(mutex)
    }

    /// Makes a new lock in the child, where those who waited are not.
    package func renewAfterFork() {
        initializeLocks()
    }

    /// Wakes every thread that waits, to look at the state again.
    package func wakeAll() {
        pthread_cond_broadcast(condition)
    }

    /// Calls `body` with the lock held, now and after each `wakeAll`, until it gives a result or the deadline passes.
    ///
    /// - Returns: nil when the deadline passed first.
    package func wait<Result>(until deadline: MonotonicTime?, _ body: (inout State) -> Result?) -> Result? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = body(&state.pointee) { return result }
            guard let deadline else {
                pthread_cond_wait(condition, mutex)
                continue
            }
            var limit = deadline.timespec
            if pthread_cond_timedwait(condition, mutex, &limit) == ETIMEDOUT {
                return body(&state.pointee)
            }
        }
    }
}

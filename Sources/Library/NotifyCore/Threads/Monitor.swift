// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// State protected by a lock, with a condition to wait for changes. See pthread_mutex_lock(3) and pthread_cond_wait(3).
///
/// `Synchronization.Mutex` has no condition variable; this is for places where a thread must wait.
///
/// Make the state a struct of its own, not a bare dictionary or optional: for these Swift's runtime creates metadata on
/// first use, for which it searches all conformances of the program, which took a fifth of a command's start-up time.
///
/// `@unchecked Sendable`: the state is accessed only with the lock held.
package final class Monitor<State>: @unchecked Sendable {
    // Pointers, not properties: threads know the lock by its address, and as the lock already excludes others, run-time
    // checks for exclusive access would only cost time.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let state = UnsafeMutablePointer<State>.allocate(capacity: 1)

    package init(_ initial: consuming State) {
        state.initialize(to: initial)
        createLock()
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        state.deinitialize(count: 1)
        condition.deallocate()
        mutex.deallocate()
        state.deallocate()
    }

    private func createLock() {
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        condition.initialize(to: pthread_cond_t())
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    /// Runs `body` with the lock held. `body` must not use this monitor.
    @inline(__always)
    package func withLock<Result, Failure: Error>(_ body: (inout State) throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state.pointee)
    }

    /// Runs `body` with the lock held, unless it can't be taken before the deadline.
    package func withLock<Result>(until deadline: MonotonicTime, _ body: (inout State) -> Result) -> Result? {
        var time = deadline.timespec
        guard linux_lock_until(mutex, &time) == 0 else { return nil }
        defer { pthread_mutex_unlock(mutex) }
        return body(&state.pointee)
    }

    /// Takes the lock before fork(2), so that the state is consistent in the child; see pthread_atfork(3).
    package func lockForFork() {
        pthread_mutex_lock(mutex)
    }

    /// Releases the lock in the parent.
    package func unlockAfterFork() {
        pthread_mutex_unlock(mutex)
    }

    /// Creates a new lock in the child, where the waiting threads do not exist.
    package func renewAfterFork() {
        createLock()
    }

    /// Wakes every waiting thread to check the state again.
    package func wakeAll() {
        pthread_cond_broadcast(condition)
    }

    /// Calls `body` with the lock held, now and after each `wakeAll`, until it returns a result or the deadline passes.
    ///
    /// - Returns: nil if the deadline passed first.
    package func wait<Result>(until deadline: MonotonicTime?, _ body: (inout State) -> Result?) -> Result? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = body(&state.pointee) { return result }
            if var time = deadline?.timespec {
                if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT { return body(&state.pointee) }
            } else {
                pthread_cond_wait(condition, mutex)
            }
        }
    }
}

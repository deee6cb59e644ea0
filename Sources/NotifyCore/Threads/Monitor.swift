// SPDX-License-Identifier: Apache-2.0

import CLinux

/// State protected by a lock, with a condition to wait for changes.
///
/// `Synchronization.Mutex` has no condition variable; this is for places where a thread must wait.
///
/// Make the state a struct of its own, not a bare dictionary or optional: for these Swift's runtime creates metadata on
/// first use, for which it searches all conformances of the program, which took a fifth of a command's start-up time.
///
/// `@unchecked Sendable`: the state is accessed only with the lock held.
package final class Monitor<State>: @unchecked Sendable {
    // Pointers, not properties: the kernel and other threads know the lock by its address, and as the lock already
    // excludes others, run-time checks for exclusive access would only cost time. One allocation, but not one struct:
    // to the thread sanitizer an access to part of a struct is one to its start.
    private let lock: UnsafeMutablePointer<linux_lock>
    private let state: UnsafeMutablePointer<State>

    package init(_ initial: consuming State) {
        let alignment = max(MemoryLayout<linux_lock>.alignment, MemoryLayout<State>.alignment)
        let offset = (MemoryLayout<linux_lock>.size + alignment - 1) / alignment * alignment
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: offset + MemoryLayout<State>.size,
            alignment: alignment
        )
        lock = memory.initializeMemory(as: linux_lock.self, to: linux_lock())
        state = (memory + offset).initializeMemory(as: State.self, to: initial)
    }

    deinit {
        state.deinitialize(count: 1)
        UnsafeMutableRawPointer(lock).deallocate()
    }

    /// Runs `body` with the lock held. `body` must not use this monitor.
    @inline(__always)
    package func withLock<Result, Failure: Error>(_ body: (inout State) throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        linux_take(lock)
        defer { linux_give(lock) }
        return try body(&state.pointee)
    }

    /// Runs `body` with the lock held, unless it can't be taken before the deadline.
    package func withLock<Result>(until deadline: MonotonicTime, _ body: (inout State) -> Result) -> Result? {
        guard linux_take_until(lock, deadline.nanoseconds) else { return nil }
        defer { linux_give(lock) }
        return body(&state.pointee)
    }

    /// Takes the lock before fork(2), so that the state is consistent in the child; see pthread_atfork(3).
    package func lockForFork() {
        linux_take(lock)
    }

    /// Releases the lock in the parent.
    package func unlockAfterFork() {
        linux_give(lock)
    }

    /// Creates a new lock in the child, where the waiting threads do not exist.
    package func renewAfterFork() {
        lock.pointee = linux_lock()
    }

    /// Wakes every waiting thread to check the state again.
    package func wakeAll() {
        linux_wake_all(lock)
    }

    /// Calls `body` with the lock held, now and after each `wakeAll`, until it returns a result or the deadline passes.
    ///
    /// - Returns: nil if the deadline passed first.
    package func wait<Result>(until deadline: MonotonicTime?, _ body: (inout State) -> Result?) -> Result? {
        linux_take(lock)
        defer { linux_give(lock) }
        while true {
            if let result = body(&state.pointee) { return result }
            let isInTime = linux_wait(lock, deadline?.nanoseconds ?? -1)
            if !isInTime { return body(&state.pointee) }
        }
    }
}

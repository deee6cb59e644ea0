// SPDX-License-Identifier: Apache-2.0

import CLinux

/// State behind a lock, and a condition to wait for a change of it.
///
/// `Synchronization.Mutex` has no condition; this one is used where a thread must wait.
///
/// Let the state be a struct of its own, not a bare dictionary or optional: for these Swift's runtime makes metadata at
/// the first use, and looks through all conformances of the program for it, which was a fifth of the start of a command.
///
/// `@unchecked Sendable`: the state is reached only with the lock held.
package final class Monitor<State>: @unchecked Sendable {
    // Pointers, not properties: the kernel and other threads know the lock by its address, and the lock already excludes,
    // so that a check for exclusive access at run time would only cost time. In one piece of memory, but not in one struct:
    // to the thread sanitizer an access to a part of a struct is one to its beginning.
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

    /// Runs `body` with the lock held. `body` must not call back into this monitor.
    @inline(__always)
    package func withLock<Result, Failure: Error>(_ body: (inout State) throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        linux_take(lock)
        defer { linux_give(lock) }
        return try body(&state.pointee)
    }

    /// Runs `body` with the lock held, unless it is not to be had before the deadline.
    package func withLock<Result>(until deadline: MonotonicTime, _ body: (inout State) -> Result) -> Result? {
        guard linux_take_until(lock, deadline.nanoseconds) else { return nil }
        defer { linux_give(lock) }
        return body(&state.pointee)
    }

    /// Takes the lock before fork(2), so that the state is whole in the child; see pthread_atfork(3).
    package func lockForFork() {
        linux_take(lock)
    }

    /// Gives the lock back in the parent.
    package func unlockAfterFork() {
        linux_give(lock)
    }

    /// Makes a new lock in the child, where those who waited are not.
    package func renewAfterFork() {
        lock.pointee = linux_lock()
    }

    /// Wakes every thread that waits, to look at the state again.
    package func wakeAll() {
        linux_wake_all(lock)
    }

    /// Calls `body` with the lock held, now and after each `wakeAll`, until it gives a result or the deadline passes.
    ///
    /// - Returns: nil when the deadline passed first.
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

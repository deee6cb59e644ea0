// SPDX-License-Identifier: Apache-2.0

import CForkGuard
import CLinux
import Glibc
import NotifyCore
import Synchronization

/// A pipe through which a program reads tokens, each as four bytes in network byte order. See pipe(7).
///
/// The writing end does not block. If the pipe is full, each token is kept once, until the `DeferredWork` finds room: however
/// late the program reads, it learns of every token.
package final class TokenPipe: Sendable {
    private struct State {
        var writeEnd: Int32
        /// Have both ends closed in the child of fork(2): anything that it reads would be missing here.
        var marks: [OpaquePointer?] = []
        /// Tokens for which there was no room, in order.
        var waiting: [Int32] = []
        var waitingSet: Set<Int32> = []
    }

    /// The reading end.
    let readEnd: Int32
    /// The identity of the pipe: the program may have closed its end, and the number may since belong to something
    /// else.
    private let inode: ino_t
    /// How many tokens use it; changed only with the lock of the `TokenEngine` held.
    let users = Atomic(1)
    private let deferredWork: DeferredWork
    private let state: Monitor<State>

    init(deferredWork: DeferredWork) throws(NotifyStatus) {
        var ends: [Int32] = [-1, -1]
        guard linux_pipe(&ends) == 0 else { throw .failed }
        var facts = stat()
        fstat(ends[1], &facts)
        inode = facts.st_ino
        readEnd = ends[0]
        self.deferredWork = deferredWork
        state = Monitor(State(writeEnd: ends[1], marks: ends.map { fork_close_in_child($0, false) }))
    }

    /// Whether the program still has its end.
    var isReadable: Bool { isOurs(readEnd) }

    /// Whether a descriptor is one of the pipe: the program may have closed all that it has.
    private func isOurs(_ end: Int32) -> Bool {
        var facts = stat()
        return fstat(end, &facts) == 0 && facts.st_ino == inode && facts.st_mode & S_IFMT == S_IFIFO
    }

    /// Writes a token, or keeps it until there is room, unless it is cancelled by then: see ``forget(_:)``.
    func write(_ token: Int32, unless isCancelled: () -> Bool) {
        let mustWait = state.withLock { state in
            guard !isCancelled(), state.writeEnd >= 0, isOurs(state.writeEnd) else { return false }
            if state.waiting.isEmpty, TokenPipe.write(token, to: state.writeEnd) { return false }
            guard state.waitingSet.insert(token).inserted else { return false }
            state.waiting.append(token)
            return state.waiting.count == 1
        }
        if mustWait { deferredWork.watch(self) }
    }

    /// Leaves no room.
    func fill() {
        let bytes = [UInt8](repeating: 0, count: 65_536)
        state.withLock { state in
            while Glibc.write(state.writeEnd, bytes, bytes.count) > 0 {}
        }
    }

    /// Makes room again.
    func drain() {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        read(readEnd, &bytes, bytes.count)
    }

    /// Writes pending tokens while there is room.
    ///
    /// - Returns: the descriptor to wait for; nil if nothing is pending.
    func flush() -> Int32? {
        state.withLock { state in
            guard state.writeEnd >= 0, isOurs(state.writeEnd) else { return nil }
            let written = state.waiting.prefix { TokenPipe.write($0, to: state.writeEnd) }
            state.waitingSet.subtract(written)
            state.waiting.removeFirst(written.count)
            return state.waiting.isEmpty ? nil : state.writeEnd
        }
    }

    /// A token was cancelled: it is not written after this has returned.
    func forget(_ token: Int32) {
        state.withLock { state in
            if state.waitingSet.remove(token) != nil { state.waiting.removeAll { $0 == token } }
        }
    }

    /// Closes both ends.
    func close() {
        state.withLock { state in
            guard state.writeEnd >= 0 else { return }
            for mark in state.marks { fork_keep_in_child(mark) }
            if isReadable { Glibc.close(readEnd) }
            if isOurs(state.writeEnd) { Glibc.close(state.writeEnd) }
            state = State(writeEnd: -1)
        }
    }

    /// - Returns: false if there is no room.
    private static func write(_ token: Int32, to descriptor: Int32) -> Bool {
        withoutBrokenPipeSignal {
            var bytes = token.bigEndian
            while Glibc.write(descriptor, &bytes, 4) < 0 {
                if errno == EINTR { continue }
                // If the reading end is closed, nothing can be done; only a full pipe is worth waiting for.
                return errno != EAGAIN
            }
            return true
        }
    }

    /// A program that has closed its end must not be killed by SIGPIPE for that.
    private static func withoutBrokenPipeSignal(_ body: () -> Bool) -> Bool {
        var brokenPipe = sigset_t()
        var before = sigset_t()
        sigemptyset(&brokenPipe)
        sigaddset(&brokenPipe, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &brokenPipe, &before)
        // If it was already blocked, the caller has blocked it. One that is already pending is the caller's, too.
        let wasBlocked = sigismember(&before, SIGPIPE) == 1
        let result = body()
        if !wasBlocked {
            var nothing = timespec()
            sigtimedwait(&brokenPipe, nil, &nothing)
            pthread_sigmask(SIG_SETMASK, &before, nil)
        }
        return result
    }
}

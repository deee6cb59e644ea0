// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// A pipe through which a program reads tokens, each as four bytes in network byte order. See pipe(7).
///
/// The end that is written to does not block. When the pipe is full, each token waits once, until the `Keeper` finds
/// room: however late the program reads, it learns of every token.
package final class TokenPipe: Sendable {
    private struct State {
        var writeEnd: Int32
        /// Tokens that found no room, in order.
        var waiting: [Int32] = []
        var waitingSet: Set<Int32> = []
    }

    /// What the program reads from.
    let readEnd: Int32
    /// Which pipe it is: the program may have closed its end, and the number may belong to something else by now.
    private let inode: ino_t
    private let keeper: Keeper
    private let state: Monitor<State>

    init(keeper: Keeper) throws(NotifyStatus) {
        var ends: [Int32] = [-1, -1]
        guard linux_pipe(&ends) == 0 else { throw .failed }
        var facts = stat()
        fstat(ends[1], &facts)
        inode = facts.st_ino
        readEnd = ends[0]
        self.keeper = keeper
        state = Monitor(State(writeEnd: ends[1]))
        // In a child what it reads would be missing here.
        _ = linux_close_in_child(ends[0], false)
        _ = linux_close_in_child(ends[1], false)
    }

    /// Writes a token, or keeps it until there is room.
    func write(_ token: Int32) {
        let mustWait = state.withLock { state in
            guard state.writeEnd >= 0 else { return false }
            if state.waiting.isEmpty, TokenPipe.write(token, to: state.writeEnd) { return false }
            guard state.waitingSet.insert(token).inserted else { return false }
            state.waiting.append(token)
            return state.waiting.count == 1
        }
        if mustWait { keeper.watch(self) }
    }

    /// Writes what waits, as far as there is room.
    ///
    /// - Returns: the descriptor to wait for; nil when nothing waits.
    func flush() -> Int32? {
        state.withLock { state in
            guard state.writeEnd >= 0 else { return nil }
            let written = state.waiting.prefix { TokenPipe.write($0, to: state.writeEnd) }
            state.waitingSet.subtract(written)
            state.waiting.removeFirst(written.count)
            return state.waiting.isEmpty ? nil : state.writeEnd
        }
    }

    /// A token was cancelled: it is not written any more.
    func forget(_ token: Int32) {
        state.withLock { state in
            if state.waitingSet.remove(token) != nil { state.waiting.removeAll { $0 == token } }
        }
    }

    /// Closes both ends.
    func close() {
        state.withLock { state in
            guard state.writeEnd >= 0 else { return }
            linux_keep_in_child(state.writeEnd)
            linux_keep_in_child(readEnd)
            var facts = stat()
            if fstat(readEnd, &facts) == 0, facts.st_ino == inode, facts.st_mode & S_IFMT == S_IFIFO {
                Glibc.close(readEnd)
            }
            Glibc.close(state.writeEnd)
            state = State(writeEnd: -1)
        }
    }

    /// - Returns: false when there is no room.
    private static func write(_ token: Int32, to descriptor: Int32) -> Bool {
        withoutBrokenPipeSignal {
            var bytes = token.bigEndian
            while Glibc.write(descriptor, &bytes, 4) < 0 {
                if errno == EINTR { continue }
                // With the reading end closed nobody will ever know; only a full pipe is worth waiting for.
                return errno != EAGAIN
            }
            return true
        }
    }

    /// A program that has closed its end must not be ended for that by SIGPIPE.
    private static func withoutBrokenPipeSignal(_ body: () -> Bool) -> Bool {
        var brokenPipe = sigset_t()
        var before = sigset_t()
        sigemptyset(&brokenPipe)
        sigaddset(&brokenPipe, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &brokenPipe, &before)
        // One that was blocked before is somebody else's, and so is one that waits already.
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

// SPDX-License-Identifier: Apache-2.0

import CForkGuard
import Glibc

/// Writes the posts still queued in an outbox when the program exits. See atexit(3).
///
/// A bus reads what a program has left in its socket to the end, unless it has something to write to it: then
/// dbus-daemon finds the connection broken and discards what it has not read. So a program that has filled the socket,
/// or has asked the bus about its progress, waits for the reply to a last question. One that has posted only a few
/// names has done neither, and pays nothing.
enum ExitFlush {
    /// For how long all outboxes together may delay the exit, in milliseconds.
    private static let limit: Int64 = 1_000

    private struct State {
        var outboxes: [Outbox] = []
        /// Whether the handler is installed, and has not run yet.
        var isArranged = false
    }

    private static let state = Monitor(State())

    /// Flushes an outbox when the program exits. Called when a post is left queued in it, or a question is asked.
    ///
    /// Works even during exit: a handler that was installed before this one runs after it, and may post.
    static func cover(_ outbox: Outbox) {
        let mustArrange = state.withLock { state in
            if !state.outboxes.contains(where: { $0 === outbox }) { state.outboxes.append(outbox) }
            defer { state.isArranged = true }
            return !state.isArranged
        }
        if mustArrange { atexit { ExitFlush.run() } }
    }

    /// The outbox was closed.
    static func forget(_ outbox: Outbox) {
        state.withLock { $0.outboxes.removeAll { $0 === outbox } }
    }

    private static func run() {
        // In the child of fork(2), queued posts belong to the parent, and so does any thread that holds a lock.
        if fork_is_cut_off() { return }
        let deadline = MonotonicTime.now + limit
        let outboxes = state.withLock(until: deadline) { state in
            state.isArranged = false
            return state.outboxes
        }
        for outbox in outboxes ?? [] { outbox.finish(until: deadline) }
    }
}

extension Outbox {
    /// Writes what is queued, and waits until the bus has processed it, on the exiting thread; does not wait for a bus
    /// that is away.
    ///
    /// It interacts with other threads only through the lock, for which it waits no longer than the deadline: a program
    /// may exit inside a callback, and while another thread opens the connection.
    func finish(until deadline: MonotonicTime) {
        // Another thread may write the last of it meanwhile, and then nothing would wake this one.
        let longestSleep: Int32 = 20
        while MonotonicTime.now < deadline {
            let request: PollRequest?? = state.withLock(until: deadline) { state in
                if state.link == .open {
                    // One second is short, and only one queue of posts is left.
                    state.pace.lift()
                    read(Int16(POLLIN), &state)
                    drain(&state)
                    if state.isDrained { askLast(&state) }
                }
                if state.isDrained, state.pace.isSettled { return nil }
                switch state.link {
                case .open:
                    guard let connection = state.connection else { return nil }
                    let events = Int16(POLLIN) | (state.canWrite ? Int16(POLLOUT) : 0)
                    return PollRequest(descriptor: connection.descriptor, events: events)
                // The thread that opens the connection carries on; poll(2) ignores this number.
                case .closed where state.isDueAtOnce: return PollRequest()
                case .connecting, .opening: return PollRequest()
                case .closed, .shut: return nil
                }
            }
            guard case .some(.some(let request)) = request else { return }
            var events = request.pollfd
            poll(&events, 1, min(longestSleep, deadline.millisecondsFromNow))
        }
    }
}

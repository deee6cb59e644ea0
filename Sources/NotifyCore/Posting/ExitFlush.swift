// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Writes, when the program ends, the posts that still wait in an outbox. See atexit(3).
///
/// A bus reads to the end what a program has left in its socket, unless it has something to write there: then dbus-daemon
/// finds the connection broken, and gives up what it has not read. So a program that has filled the socket, or has asked
/// the bus how far it is, waits for the answer to a last question. One that has posted no more than a few names has not,
/// and pays nothing.
enum ExitFlush {
    /// For how long all outboxes together may keep the program from ending, in milliseconds.
    private static let limit: Int64 = 1_000

    private struct State {
        var outboxes: [Outbox] = []
        /// Whether the handler is installed, and has not run yet.
        var isArranged = false
    }

    private static let state = Monitor(State())

    /// Flushes an outbox at the program's end. Called when a post is left waiting in it, or a question is asked.
    ///
    /// Also while the program ends: a handler that was installed before this one runs after it, and may post.
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
        // What waits in the child of fork(2) is its parent's, and so is the thread that holds a lock.
        if linux_is_cut_off() { return }
        let deadline = MonotonicTime.now + limit
        let outboxes = state.withLock(until: deadline) { state in
            state.isArranged = false
            return state.outboxes
        }
        for outbox in outboxes ?? [] { outbox.finish(until: deadline) }
    }
}

extension Outbox {
    /// Writes what waits, and waits until the bus has dealt with it, on the thread that ends the program; does not wait for
    /// a bus that is away.
    ///
    /// It takes no part in what other threads do but for the lock, and waits for that no longer than until the deadline: a
    /// program may end inside a callback, and while another thread opens the connection.
    func finish(until deadline: MonotonicTime) {
        // Another thread may write the last of it meanwhile, and nothing would come to wake this one.
        let longestSleep: Int32 = 20
        while MonotonicTime.now < deadline {
            let request: PollRequest?? = state.withLock(until: deadline) { state in
                if state.link == .open {
                    // A second is not long, and no more than one queue of posts is left.
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
                // The thread that opens it goes on with that; poll(2) passes over this number.
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

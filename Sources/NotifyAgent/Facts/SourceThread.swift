// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// The thread of a source that has to wait for somebody outside. Nobody waits for its end: it may hang for as long as
/// what it talks to hangs.
final class SourceThread: Sendable {
    enum Wake {
        case ready
        case timeIsOver
        case stopped
    }

    private struct State {
        var isStopping = false
        /// A socket on which the thread may block.
        var socket: Int32 = -1
    }

    private let wakeup = linux_eventfd()
    private let state = Monitor(State())

    deinit { if wakeup >= 0 { close(wakeup) } }

    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// - Returns: whether there is a thread.
    func start(_ name: String, _ body: @escaping @Sendable (SourceThread) -> Void) -> Bool {
        guard wakeup >= 0, let thread = try? EngineThread(name: name, { body(self) }) else { return false }
        thread.detach()
        return true
    }

    func stop() {
        state.withLock { state in
            state.isStopping = true
            if state.socket >= 0 { shutdown(state.socket, Int32(SHUT_RDWR)) }
        }
        var one: UInt64 = 1
        _ = write(wakeup, &one, 8)
    }

    /// Runs `body`, which may block on a socket: `stop` shuts it down, and what blocks ends.
    func guarding<Result>(_ socket: Int32, _ body: () -> Result) -> Result {
        state.withLock { state in
            state.socket = socket
            if state.isStopping { shutdown(socket, Int32(SHUT_RDWR)) }
        }
        defer { state.withLock { $0.socket = -1 } }
        return body()
    }

    /// Sleeps until a descriptor is readable, the thread is to stop, or the time is over; -1 means no descriptor, and
    /// no time.
    func wait(for descriptor: Int32 = -1, milliseconds: Int32 = -1) -> Wake {
        var descriptors = [
            pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            let count = poll(&descriptors, 2, milliseconds)
            if count < 0, errno == EINTR { continue }
            if count == 0 { return .timeIsOver }
            return descriptors[0].revents == 0 ? .ready : .stopped
        }
    }
}

/// When a source tries again: soon at first, then less and less often.
struct SourceRetry {
    private static let first: Int32 = 250
    private static let last: Int32 = 30_000

    private var delay = SourceRetry.first

    mutating func reset() { delay = SourceRetry.first }

    /// - Returns: how long to wait, in milliseconds.
    mutating func next() -> Int32 {
        defer { delay = min(delay * 2, SourceRetry.last) }
        return delay
    }
}

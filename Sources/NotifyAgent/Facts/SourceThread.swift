// SPDX-License-Identifier: Apache-2.0

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

    private let wakeup = try? WakeDescriptor()
    private let state = Monitor(State())

    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// - Returns: whether there is a thread.
    func start(_ name: String, _ body: @escaping @Sendable (SourceThread) -> Void) -> Bool {
        guard wakeup != nil, let thread = try? EngineThread(name: name, { body(self) }) else { return false }
        thread.detach()
        return true
    }

    func stop() {
        state.withLock { state in
            state.isStopping = true
            if state.socket >= 0 { shutdown(state.socket, Int32(SHUT_RDWR)) }
        }
        wakeup?.signal()
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
            pollfd(fd: wakeup?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
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

extension BackOff {
    /// For a source whose other side does not answer.
    static var ofSource: BackOff { BackOff(first: 250, last: 30_000) }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCore

/// A thread with an event loop. Others hand it work; nothing that lives on its loop is touched by them.
package final class EventThread: Sendable {
    private struct Shared {
        var thread: EngineThread?
        var work: [@Sendable (EventLoop) -> Void] = []
        var isStopping = false
        /// A socket on which the thread may block.
        var socket: Int32 = -1
    }

    private let wakeup: WakeDescriptor
    private let shared = Monitor(Shared())

    /// - Throws: `failed` if there is no descriptor or no thread.
    package init(name: String) throws(NotifyBusError) {
        wakeup = try WakeDescriptor()
        let thread = try EngineThread(name: name) { [self] in
            let loop = EventLoop(self)
            loop.run()
        }
        shared.withLock { $0.thread = thread }
    }

    /// Runs something on the thread, in the order of the calls. After `stop` nothing runs any more.
    package func perform(_ work: @escaping @Sendable (EventLoop) -> Void) {
        shared.withLock { $0.work.append(work) }
        wakeup.signal()
    }

    /// Stops the thread, after what it is currently doing. Everything on it is released there.
    ///
    /// - Parameter waits: whether to wait for its end. It may hang for as long as the other side of a source does.
    package func stop(waits: Bool = false) {
        let thread: EngineThread? = shared.withLock { shared in
            shared.isStopping = true
            if shared.socket >= 0 { shutdown(shared.socket, Int32(SHUT_RDWR)) }
            defer { shared.thread = nil }
            return shared.thread
        }
        wakeup.signal()
        if waits { thread?.finish() } else { thread?.detach() }
    }

    /// Runs `body`, which may block on a socket: `stop` shuts the socket down, which unblocks it.
    package func guarding<Result>(_ socket: Int32, _ body: () -> Result) -> Result {
        shared.withLock { shared in
            shared.socket = socket
            if shared.isStopping { shutdown(socket, Int32(SHUT_RDWR)) }
        }
        defer { shared.withLock { $0.socket = -1 } }
        return body()
    }

    var wakeDescriptor: Int32 { wakeup.descriptor }
    var isStopping: Bool { shared.withLock { $0.isStopping } }

    func takeWork() -> [@Sendable (EventLoop) -> Void] {
        wakeup.clear()
        return shared.withLock { shared in
            defer { shared.work = [] }
            return shared.isStopping ? [] : shared.work
        }
    }
}

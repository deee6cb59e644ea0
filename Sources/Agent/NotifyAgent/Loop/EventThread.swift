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
        /// Since when it may, and for the answer to which question.
        var blocking: (since: MonotonicTime, question: String)?
        /// Tells its watcher that it may, unless that is about to look anyway.
        var notice: (@Sendable () -> Void)?
        var isWatched = false
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

    /// Runs `body`, which may block on a socket: `stop` and `endBlocking` shut the socket down, which unblocks it.
    ///
    /// - Parameter socket: nil if it is not known yet.
    package func guarding<Result>(_ socket: Int32?, asking question: String, _ body: () -> Result) -> Result {
        let notice: (@Sendable () -> Void)? = shared.withLock { shared in
            shared.socket = socket ?? -1
            shared.blocking = (.now, question)
            if shared.isStopping, let socket { shutdown(socket, Int32(SHUT_RDWR)) }
            defer { shared.isWatched = true }
            return shared.isWatched ? nil : shared.notice
        }
        notice?()
        defer { shared.withLock { ($0.socket, $0.blocking) = (-1, nil) } }
        return body()
    }

    /// Watches that it does not block for ever. An idle thread wakes no other.
    ///
    /// - Parameter notice: called on the thread when it may block; `endBlocking` is to be called after a while.
    package func watchBlocking(_ notice: @escaping @Sendable () -> Void) { shared.withLock { $0.notice = notice } }

    /// Ends what has blocked for too long, if it is known on which socket.
    ///
    /// - Parameter limit: in milliseconds.
    /// - Returns: when to call this again, nil if there will be another notice; and the question that was not answered in time.
    package func endBlocking(after limit: Int64) -> (next: MonotonicTime?, late: String?) {
        shared.withLock { shared in
            guard let blocking = shared.blocking else {
                shared.isWatched = false
                return (nil, nil)
            }
            let end = blocking.since + limit
            if end > .now { return (end, nil) }
            if shared.socket >= 0 { shutdown(shared.socket, Int32(SHUT_RDWR)) }
            return (.now + limit, blocking.question)
        }
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

// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCore

/// A thread that sleeps until a descriptor is ready or a timer expires, and on which sources live. Nobody waits for its
/// exit: it may hang for as long as the other side of a source does.
package final class EventThread: Sendable {
    private struct Shared {
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
        try EngineThread(name: name) { [self] in
            let loop = EventLoop(self)
            loop.run()
        }.detach()
    }

    /// Runs something on the thread, in the order of the calls. After `stop` nothing runs any more.
    package func perform(_ work: @escaping @Sendable (EventLoop) -> Void) {
        shared.withLock { $0.work.append(work) }
        wakeup.signal()
    }

    /// Stops the thread, after what it is currently doing. Everything on it is released there.
    package func stop() {
        shared.withLock { shared in
            shared.isStopping = true
            if shared.socket >= 0 { shutdown(shared.socket, Int32(SHUT_RDWR)) }
        }
        wakeup.signal()
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

    fileprivate var wakeDescriptor: Int32 { wakeup.descriptor }
    fileprivate var isStopping: Bool { shared.withLock { $0.isStopping } }

    fileprivate func takeWork() -> [@Sendable (EventLoop) -> Void] {
        wakeup.clear()
        return shared.withLock { shared in
            defer { shared.work = [] }
            return shared.isStopping ? [] : shared.work
        }
    }
}

/// What the sources on a thread use of it. Only that thread uses it.
package final class EventLoop {
    private struct Timer {
        let time: MonotonicTime
        let handler: () -> Void
    }

    package let thread: EventThread
    private var handlers: [Int32: (events: Int16, handler: () -> Void)] = [:]
    private var timers: [Int: Timer] = [:]
    private var lastTimer = 0
    /// The sources that live here, by name.
    package var drivers: [String: SourceDriver] = [:]

    fileprivate init(_ thread: EventThread) { self.thread = thread }

    /// Calls `handler` whenever a descriptor has one of these events, or an error.
    package func watch(_ descriptor: Int32, _ events: Int32 = Int32(POLLIN), _ handler: @escaping () -> Void) {
        handlers[descriptor] = (Int16(truncatingIfNeeded: events), handler)
    }

    package func forget(_ descriptor: Int32) { handlers[descriptor] = nil }

    /// Calls `handler` once, after this many milliseconds.
    ///
    /// - Returns: the number of the timer, for `cancel`.
    package func after(_ milliseconds: Int64, _ handler: @escaping () -> Void) -> Int {
        lastTimer += 1
        timers[lastTimer] = Timer(time: .now + milliseconds, handler: handler)
        return lastTimer
    }

    package func cancel(_ timer: Int?) {
        if let timer { timers[timer] = nil }
    }

    fileprivate func run() {
        while !thread.isStopping {
            var first: MonotonicTime?
            for timer in timers.values { first = MonotonicTime.earlier(first, timer.time) }
            let watched = handlers
            var requests = [pollfd(fd: thread.wakeDescriptor, events: Int16(POLLIN), revents: 0)]
            requests += watched.map { pollfd(fd: $0.key, events: $0.value.events, revents: 0) }
            let count = poll(&requests, nfds_t(requests.count), first?.millisecondsFromNow ?? -1)
            if count < 0, errno != EINTR { break }
            if count > 0 {
                if requests[0].revents != 0 { for work in thread.takeWork() { work(self) } }
                // One that was removed in the meantime, or whose number was reused, is ignored.
                for request in requests.dropFirst() where request.revents != 0 { handlers[request.fd]?.handler() }
            }
            let now = MonotonicTime.now
            for (number, timer) in timers.sorted(by: { $0.value.time < $1.value.time }) where timer.time <= now {
                if timers.removeValue(forKey: number) != nil { timer.handler() }
            }
        }
        for driver in drivers.values { driver.end() }
        drivers = [:]
    }
}

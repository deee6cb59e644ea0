// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCore

/// What decides before each sleep what it waits for, such as a connection to a bus.
package protocol Pollable: AnyObject {
    var pollRequest: PollRequest { get }
    /// Goes on, for a short while: the socket has these events, or the deadline has passed.
    func proceed(_ events: Int16)
}

extension BusLink: Pollable {}
extension Receiver: Pollable {}

/// What lives on a loop until its thread ends.
package protocol LoopTenant: AnyObject {
    /// The thread ends; on it, this is called last.
    func loopHasEnded()
}

/// The loop of one thread, on which everything lives that the thread does.
///
/// It sleeps until there is something to do, and goes through its queues in rounds, in this order:
///
/// 1. work from other threads, in the order in which it was handed over;
/// 2. connections, in the order in which they were added: each handles what has come, for a short while at most;
/// 3. descriptors that are ready;
/// 4. timers that are due, the earliest first;
/// 5. what was put off by all of these, in its order.
///
/// Each takes one turn a round, and whatever takes longer than a few milliseconds is cut into pieces, each of which
/// puts off the next one. So none waits longer than one round for the others.
package final class EventLoop {
    private struct Handler {
        let events: Int16
        let call: () -> Void
    }

    private struct Timer {
        let time: MonotonicTime
        let call: () -> Void
    }

    package let thread: EventThread
    private var connections: [any Pollable] = []
    private var handlers: [Int32: Handler] = [:]
    private var timers: [Int: Timer] = [:]
    private var ports: [Int: (any Sendable) -> Void] = [:]
    private var putOff: [() -> Void] = []
    private var lastNumber = 0
    /// What lives here until the thread ends.
    package var tenant: (any LoopTenant)?
    /// What the tenants share, as long as one of them uses it.
    weak var files: LoopFiles?
    weak var inotify: LoopInotify?
    /// How long the longest uninterrupted piece of work has taken, in nanoseconds.
    package private(set) var longestStep: Int64 = 0

    init(_ thread: EventThread) { self.thread = thread }

    // MARK: - What is waited for

    package func add(_ connection: any Pollable) { connections.append(connection) }

    package func remove(_ connection: any Pollable) { connections.removeAll { $0 === connection } }

    /// Calls `handler` whenever a descriptor has one of these events, or an error.
    ///
    /// The loop sleeps in poll(2) for the few that there are: some files of /proc report a change to the first that
    /// asks, and then an epoll(7) that is itself polled would swallow it. A part that watches thousands brings an epoll
    /// of its own.
    package func watch(_ descriptor: Int32, _ events: Int32 = Int32(POLLIN), _ handler: @escaping () -> Void) {
        handlers[descriptor] = Handler(events: Int16(truncatingIfNeeded: events), call: handler)
    }

    package func forget(_ descriptor: Int32) { handlers[descriptor] = nil }

    /// Calls `handler` once, after this many milliseconds.
    ///
    /// - Returns: the number of the timer, for `cancel`.
    package func after(_ milliseconds: Int64, _ handler: @escaping () -> Void) -> Int {
        at(.now + milliseconds, handler)
    }

    /// Calls `handler` once, at this time or when it has passed.
    ///
    /// - Returns: the number of the timer, for `cancel`.
    package func at(_ time: MonotonicTime, _ handler: @escaping () -> Void) -> Int {
        lastNumber += 1
        timers[lastNumber] = Timer(time: time, call: handler)
        return lastNumber
    }

    package func cancel(_ timer: Int?) {
        if let timer { timers[timer] = nil }
    }

    /// Puts something off until everything has had its turn in this round.
    package func soon(_ work: @escaping () -> Void) { putOff.append(work) }

    /// Opens a port, by which other threads send values here.
    package func port<Value: Sendable>(_ handler: @escaping (Value) -> Void) -> Port<Value> {
        lastNumber += 1
        ports[lastNumber] = { if let value = $0 as? Value { handler(value) } }
        return Port(thread: thread, number: lastNumber)
    }

    /// After this, nothing more arrives by the port.
    package func close<Value>(_ port: Port<Value>?) {
        if let port { ports[port.number] = nil }
    }

    fileprivate func receive(_ value: any Sendable, by port: Int) { ports[port]?(value) }

    // MARK: - Rounds

    func run() {
        var requests: [pollfd] = []
        while !thread.isStopping {
            let polled = connections
            let deadline = collect(&requests, polled)
            let timeout = putOff.isEmpty ? deadline?.millisecondsFromNow ?? -1 : 0
            let count = poll(&requests, nfds_t(requests.count), timeout)
            if count < 0, errno != EINTR { break }
            if count <= 0 { for index in requests.indices { requests[index].revents = 0 } }
            if requests[0].revents != 0 {
                for work in thread.takeWork() { step { work(self) } }
            }
            for (index, connection) in polled.enumerated() {
                let (events, request) = (requests[index + 1].revents, connection.pollRequest)
                guard events != 0 || request.deadline.map({ $0 <= .now }) == true else { continue }
                // Whatever else has had its turn may have removed it, or made it connect again.
                guard connections.contains(where: { $0 === connection }) else { continue }
                step { connection.proceed(request.descriptor == requests[index + 1].fd ? events : 0) }
            }
            for request in requests.dropFirst(polled.count + 1) where request.revents != 0 {
                // One that was removed in the meantime is passed over.
                if let handler = handlers[request.fd] { step(handler.call) }
            }
            runTimers()
            let due = putOff
            putOff = []
            for work in due { step(work) }
        }
        tenant?.loopHasEnded()
        (tenant, timers, putOff) = (nil, [:], [])
    }

    /// - Returns: when to wake up in any case.
    private func collect(_ requests: inout [pollfd], _ connections: [any Pollable]) -> MonotonicTime? {
        var first: MonotonicTime?
        for timer in timers.values { first = .earlier(first, timer.time) }
        requests.removeAll(keepingCapacity: true)
        requests.append(pollfd(fd: thread.wakeDescriptor, events: Int16(POLLIN), revents: 0))
        for connection in connections {
            let request = connection.pollRequest
            first = .earlier(first, request.deadline)
            requests.append(request.pollfd)
        }
        for (descriptor, handler) in handlers {
            requests.append(pollfd(fd: descriptor, events: handler.events, revents: 0))
        }
        return first
    }

    private func runTimers() {
        if timers.isEmpty { return }
        let now = MonotonicTime.now
        for (number, timer) in timers.sorted(by: { $0.value.time < $1.value.time }) where timer.time <= now {
            if timers.removeValue(forKey: number) != nil { step(timer.call) }
        }
    }

    private func step(_ work: () -> Void) {
        let began = MonotonicTime.now.nanoseconds
        work()
        longestStep = max(longestStep, MonotonicTime.now.nanoseconds - began)
    }
}

/// By which another thread sends values to a loop.
package struct Port<Value: Sendable>: Sendable {
    let thread: EventThread
    let number: Int

    package func send(_ value: Value) {
        thread.perform { [number] loop in loop.receive(value, by: number) }
    }
}

/// Tries again on a loop what has failed: after 250 ms, then at growing intervals up to `longest`.
final class Retry {
    /// In milliseconds.
    static let longest: Int64 = 30_000

    private let loop: EventLoop
    private var backOff = BackOff(first: 250, last: Retry.longest)
    private var timer: Int?

    init(on loop: EventLoop) { self.loop = loop }

    deinit { cancel() }

    func schedule(_ work: @escaping () -> Void) { schedule(after: backOff.next(), work) }

    /// - Parameter pause: in milliseconds.
    func schedule(after pause: Int64, _ work: @escaping () -> Void) {
        cancel()
        timer = loop.after(pause) { [weak self] in
            self?.timer = nil
            work()
        }
    }

    /// Forgets the next attempt, but not how often it has failed.
    func cancel() {
        loop.cancel(timer)
        timer = nil
    }

    /// It has succeeded.
    func reset() {
        cancel()
        backOff.reset()
    }
}

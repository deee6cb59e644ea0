// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// What the leader sleeps on: the sockets of both connections, and a descriptor by which others wake it. See epoll(7).
///
/// Not poll(2), because a thread that borrows the lead takes the observing socket out of it while the leader sleeps, so
/// that an answer from the bus wakes that thread alone.
///
/// `@unchecked Sendable`: only the thread that has the lead touches the variables.
final class LeaderSleep: @unchecked Sendable {
    struct Events {
        var isAwake = false
        var observing: Int16 = 0
        var posting: Int16 = 0
        var postingConnection = 0
    }

    private enum Source {
        static let wake: UInt64 = 0
        static let observing: UInt64 = 1
        static let posting: UInt64 = 2
    }

    private struct Watched {
        var descriptor: Int32 = -1
        var events: Int16 = 0
        var connection = 0
        /// Whether one event ends it.
        var isOnce = false
        /// Whether the kernel reports these events.
        var isArmed = false

        func isMeant(by request: PollRequest) -> Bool {
            descriptor == request.descriptor && connection == request.connection
        }
    }

    /// Reports one event, and then nothing until it is armed again, not even that the other side has hung up.
    private static let once: UInt32 = 1 << 30
    /// How long to sleep at most if the kernel has no memory to watch a socket, in milliseconds.
    private static let lookAgain: Int32 = 100

    private let epoll: Int32
    private var observing = Watched()
    private var posting = Watched()

    init(_ wakeDescriptor: WakeDescriptor) throws(NotifyBusError) {
        epoll = linux_epoll()
        if epoll < 0 { throw .outOfDescriptors("an epoll descriptor", errno) }
        guard linux_epoll_add(epoll, wakeDescriptor.descriptor, UInt32(POLLIN), Source.wake) == 0 else {
            let code = errno
            close(epoll)
            throw .outOfDescriptors("an epoll descriptor", code)
        }
    }

    deinit { close(epoll) }

    /// Watches the observing socket from now on.
    @inline(__always)
    func watchObserving(_ request: PollRequest) {
        if observing.isArmed, observing.isMeant(by: request), observing.events == request.events { return }
        observing = arm(request, Source.observing, once: request.isProvisional, after: observing)
    }

    /// Watches the posting socket from now on, for one event, because a posting thread may close it at any time.
    @inline(__always)
    func watchPosting(_ request: PollRequest) {
        if posting.isArmed, posting.isMeant(by: request), posting.events == request.events { return }
        posting = arm(request, Source.posting, once: true, after: posting)
    }

    /// Keeps the observing socket from waking the sleeper, until it is watched again.
    func ignoreObserving() {
        guard observing.isArmed else { return }
        linux_epoll_change(epoll, observing.descriptor, LeaderSleep.once, Source.observing)
        observing.isArmed = false
    }

    /// Must be called before the observing socket is closed: a duplicate, such as the agent's, would keep it here.
    func forgetObserving() {
        if observing.descriptor >= 0 { linux_epoll_remove(epoll, observing.descriptor) }
        observing = Watched()
    }

    private func arm(_ request: PollRequest, _ source: UInt64, once: Bool, after previous: Watched) -> Watched {
        var new = Watched(descriptor: request.descriptor, events: request.events, connection: request.connection)
        if request.descriptor < 0 { return new }
        new.isOnce = once
        let events = UInt32(UInt16(bitPattern: request.events)) | (once ? LeaderSleep.once : 0)
        // The number of a descriptor that was closed may have been used again.
        new.isArmed =
            previous.isMeant(by: request) && linux_epoll_change(epoll, request.descriptor, events, source) == 0
            || linux_epoll_add(epoll, request.descriptor, events, source) == 0
            || linux_epoll_change(epoll, request.descriptor, events, source) == 0
        return new
    }

    /// How to sleep.
    struct Plan {
        fileprivate var timeout: Int32
        fileprivate var missesObserving: Bool
        fileprivate var missesPosting: Bool
        fileprivate var postingConnection: Int
    }

    /// - Parameter timeout: in milliseconds; -1 for none.
    func plan(_ timeout: Int32) -> Plan {
        var plan = Plan(
            timeout: timeout,
            missesObserving: observing.descriptor >= 0 && !observing.isArmed,
            missesPosting: posting.descriptor >= 0 && !posting.isArmed,
            postingConnection: posting.connection
        )
        if plan.missesObserving || plan.missesPosting, !(0..<LeaderSleep.lookAgain ~= timeout) {
            plan.timeout = LeaderSleep.lookAgain
        }
        return plan
    }

    /// Sleeps. Touches no variables, because another thread may have the lead meanwhile.
    func sleep(_ plan: Plan) -> Events {
        var result = Events(postingConnection: plan.postingConnection)
        withUnsafeTemporaryAllocation(of: linux_event.self, capacity: 3) { found in
            guard let start = found.baseAddress else { return }
            for event in found.prefix(max(0, Int(linux_epoll_wait(epoll, start, 3, plan.timeout)))) {
                switch event.number {
                case Source.observing: result.observing = Int16(truncatingIfNeeded: event.events)
                case Source.posting: result.posting = Int16(truncatingIfNeeded: event.events)
                default: result.isAwake = true
                }
            }
        }
        if plan.missesObserving { result.observing |= Int16(POLLIN) }
        if plan.missesPosting { result.posting |= Int16(POLLIN) | Int16(POLLOUT) }
        return result
    }

    /// Notes that sockets watched for one event have reported it.
    func note(_ events: Events) {
        if events.observing != 0, observing.isOnce { observing.isArmed = false }
        if events.posting != 0 { posting.isArmed = false }
    }
}

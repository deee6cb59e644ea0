// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore
import Synchronization

extension Waiter {
    /// Returns once the bus has confirmed the observer.
    static func observe(
        _ subject: Subject,
        in center: NotifyCenter,
        _ inbox: Inbox,
        until deadline: Int64?
    ) throws(StartError) -> NotifyCenter.Observation {
        let start = Clock.monotonic
        let timeLimit: Int64 = 25_000_000_000
        let left = deadline.map { min(max(0, $0 - start), timeLimit) } ?? timeLimit
        do throws(NotifyBusError) {
            return try center.addObserver(for: subject.ofCenter, timeout: .nanoseconds(left)) { inbox.put($0) }
        } catch {
            guard let deadline, Clock.monotonic >= deadline, error.code == .timedOut else { throw StartError(error) }
            throw .lateBus(since: start, center)
        }
    }

    /// Returns once the bus has confirmed the observer, whenever it becomes available.
    static func observeWaiting(
        _ subject: Subject,
        in center: NotifyCenter,
        _ inbox: Inbox,
        _ wakeup: WakeDescriptor,
        until deadline: Int64?,
        printsNames: Bool,
        _ diagnostics: Diagnostics
    ) throws(StartError) -> NotifyCenter.Observation {
        let start = Clock.monotonic
        let outcome = Mutex<Result<Void, NotifyBusError>?>(nil)
        let observation: NotifyCenter.Observation
        do throws(NotifyBusError) {
            observation = try center.startObserving(subject.ofCenter, waitsForBus: true) {
                inbox.put($0)
            } whenLive: { result in
                outcome.withLock { $0 = result }
                wakeup.signal()
            }
        } catch {
            throw StartError(error)
        }
        var isAway = false
        while true {
            wakeup.clear()
            if let result = outcome.withLock({ $0 }) {
                if case .failure(let error) = result { throw StartError(error) }
                // That it is available need not be reported.
                if isAway { inbox.ignoreReturn() }
                return observation
            }
            for change in inbox.takeChanges() where !isAway {
                guard let error = change.error else { continue }
                diagnostics.notice("\(error.description) Waiting for the bus.")
                isAway = true
            }
            let now = Clock.monotonic
            if let deadline, now >= deadline {
                throw isAway ? .timedOut(after: 0, "; there is no bus") : .lateBus(since: start, center)
            }
            var sources = [
                pollfd(fd: wakeup.descriptor, events: Int16(POLLIN), revents: 0),
                // Without events it still reports that the reader has gone.
                pollfd(fd: printsNames ? STDOUT_FILENO : -1, events: 0, revents: 0),
            ]
            poll(&sources, 2, deadline.map { Int32(clamping: ($0 - now + 999_999) / 1_000_000) } ?? -1)
            if Int32(sources[1].revents) & (POLLERR | POLLHUP) != 0 { throw .readerGone }
        }
    }
}

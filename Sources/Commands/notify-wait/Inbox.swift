// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore
import Synchronization

/// A notification and its time.
struct Notification: Coalescing {
    let name: NotifyName
    let time: timespec
    /// The same moment on the monotonic clock.
    let moment: Int64
}

/// What the center's threads pass on to the main thread.
final class Inbox: Sendable {
    private struct Contents {
        var arrivals = CoalescingQueue<Notification>()
        var changes: [NotifyCenter.ConnectionChange] = []
        var state: LifecycleState?
        /// Whether the next return of the bus should not be reported.
        var ignoresReturn = false
        var refused = 0
        var hasEnded = false
    }

    // Held only while adding or removing, never across a call into the center or to the kernel's pipe.
    private let contents = Mutex(Contents())
    private let wakeup: WakeDescriptor

    init(wakeup: WakeDescriptor) {
        self.wakeup = wakeup
    }

    func put(_ name: NotifyName) {
        let arrival = Notification(name: name, time: Clock.wall, moment: Clock.monotonic)
        let wasEmpty = contents.withLock { contents in
            let wasEmpty = contents.arrivals.isEmpty
            if contents.arrivals.enqueue(arrival) == .full { contents.refused += 1 }
            return wasEmpty
        }
        // Otherwise the main thread has been woken and has not taken everything yet.
        if wasEmpty { wakeup.signal() }
    }

    func put(_ change: NotifyCenter.ConnectionChange) {
        contents.withLock { contents in
            if contents.ignoresReturn, change.kind == .connected {
                contents.ignoresReturn = false
                return
            }
            // If the bus comes and goes while the main thread is busy, only the latest change is kept.
            if contents.changes.count >= 16 { contents.changes.removeFirst() }
            contents.changes.append(change)
        }
        wakeup.signal()
    }

    func put(_ state: LifecycleState) {
        contents.withLock { $0.state = state }
        wakeup.signal()
    }

    /// The state that this program is in since the last call; nil if that has not changed.
    func takeState() -> LifecycleState? {
        contents.withLock { contents in
            defer { contents.state = nil }
            return contents.state
        }
    }

    /// Suppresses one report that the bus is back, whether it was added already or will be.
    func ignoreReturn() {
        contents.withLock { contents in
            let index = contents.changes.firstIndex { $0.kind == .connected }
            if let index { contents.changes.remove(at: index) }
            contents.ignoresReturn = index == nil
        }
    }

    /// Everything has come that the `--then` command posted before it failed.
    func noteEnd() {
        contents.withLock { $0.hasEnded = true }
        wakeup.signal()
    }

    var hasEnded: Bool { contents.withLock { $0.hasEnded } }

    var hasArrival: Bool { contents.withLock { !$0.arrivals.isEmpty } }

    func takeArrival() -> Notification? {
        contents.withLock { $0.arrivals.popFirst() }
    }

    func takeChanges() -> [NotifyCenter.ConnectionChange] {
        contents.withLock { contents in
            defer { contents.changes = [] }
            return contents.changes
        }
    }

    /// How many notifications were dropped for lack of room since the last call.
    func takeRefused() -> Int {
        contents.withLock { contents in
            defer { contents.refused = 0 }
            return contents.refused
        }
    }
}

// Not in CommandSupport: in a library that other modules import, the compiler may look for the members of `timespec` in
// the wrong module.

extension Clock {
    /// The time of day.
    static var wall: timespec {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return now
    }
}

extension LocalTime {
    static func append(_ time: timespec, to record: inout [UInt8]) {
        append(nanosecondsSince1970: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec), to: &record)
    }
}

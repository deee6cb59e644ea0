// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
package import NotifyCore
import Synchronization

/// Where the bridge's threads meet: the center's threads bring names and ask for the status, the broker's thread takes
/// the names, and the main thread ends everything.
package final class Exchange: Sendable {
    private struct State {
        var outgoing = Exchange.coalescingQueue()
        var waitsForNames = false
        var isEnding = false
        var status = BridgeStatus()
        /// For each direction, whether a name with a control character has been logged.
        var hasLoggedUnprintable = (incoming: false, outgoing: false)
    }

    private let state = Mutex(State())
    /// Wakes the broker's thread.
    let brokerWakeUp: WakeDescriptor

    package init() throws(CommandFailure) {
        brokerWakeUp = try .ofCommand()
    }

    /// A queue for names that can't go on now: one of each.
    static func coalescingQueue() -> CoalescingQueue<NotifyName> {
        var queue = CoalescingQueue<NotifyName>()
        queue.keepEachOnce(true)
        return queue
    }

    /// Takes a name that was posted on the bus.
    package func export(_ name: NotifyName) {
        let wakes = state.withLock { state in
            switch state.outgoing.enqueue(name) {
            case .queued: break
            case .coalesced: state.status.merged += 1
            case .full: state.status.lost += 1
            }
            defer { state.waitsForNames = false }
            return state.waitsForNames
        }
        if wakes { brokerWakeUp.signal() }
    }

    /// The next name for the broker; nil if there is none, in which case the broker's thread is woken when there is
    /// one.
    func nextExport() -> NotifyName? {
        state.withLock { state in
            let name = state.outgoing.popFirst()
            state.waitsForNames = name == nil
            return name
        }
    }

    var hasNoExports: Bool { state.withLock { $0.outgoing.isEmpty } }

    /// Whether this name is queued for the broker.
    func isWaiting(_ name: NotifyName) -> Bool {
        state.withLock { $0.outgoing.contains(name) }
    }

    /// The broker accepts names from now on.
    func goOnline() {
        state.withLock { state in
            state.outgoing.keepEachOnce(false)
            state.status.isConnected = true
            state.status.since = UInt64(Clock.timeOfDay / 1_000)
        }
    }

    /// The broker is away: equal names are coalesced.
    func goOffline() {
        state.withLock { state in
            state.waitsForNames = false
            let before = state.outgoing.count
            state.outgoing.keepEachOnce(true)
            state.status.merged += before - state.outgoing.count
            if state.status.isConnected { state.status.since = UInt64(Clock.timeOfDay / 1_000) }
            state.status.isConnected = false
        }
    }

    /// Makes the broker's thread write the queued names, if the broker accepts them, and exit.
    package func endBroker() {
        state.withLock { $0.isEnding = true }
        brokerWakeUp.signal()
    }

    var isEnding: Bool { state.withLock { $0.isEnding } }

    /// Counts a name with a control character, and logs the first in each direction.
    func refuseUnprintable(_ name: NotifyName, isIncoming: Bool, _ diagnostics: Diagnostics) {
        let isFirst = state.withLock { state in
            state.status.refused += 1
            let flag = isIncoming ? \State.hasLoggedUnprintable.incoming : \State.hasLoggedUnprintable.outgoing
            defer { state[keyPath: flag] = true }
            return !state[keyPath: flag]
        }
        // The log writes it in a printable form.
        guard isFirst else { return diagnostics.detail("refused \(name)") }
        let direction = isIncoming ? "in" : "out"
        diagnostics.notice("a name with a control character is not let \(direction), nor are others like it: \(name)")
    }

    /// Changes the figures.
    func count(_ change: (inout BridgeStatus) -> Void) {
        state.withLock { change(&$0.status) }
    }

    package var status: BridgeStatus {
        state.withLock { state in
            var status = state.status
            status.waiting += state.outgoing.count
            return status
        }
    }
}

/// What `org.notifybus.Bridge1.Status` reports.
package struct BridgeStatus: Sendable {
    package var isConnected = false
    /// Since when it has been connected or disconnected, in microseconds since 1970.
    package var since = UInt64(Clock.timeOfDay / 1_000)
    /// Names sent to the broker.
    package var sent = 0
    /// Names from the broker that were posted.
    package var received = 0
    /// Names, in both directions, that were coalesced with an equal one in a queue.
    package var merged = 0
    /// Names, in both directions, that were lost because the queue was full.
    package var lost = 0
    /// Queued names, in both directions.
    package var waiting = 0
    /// Messages that are not a name, or a name that no `import` line allows; and names with a control character, in
    /// both directions.
    package var refused = 0
    /// Messages that had already arrived, or were this bridge's own.
    package var duplicates = 0
    /// Each filter and the broker's answer.
    package var filters: [String] = []

    package init() {}
}

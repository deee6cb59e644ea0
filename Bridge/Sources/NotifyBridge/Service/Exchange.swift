// SPDX-License-Identifier: Apache-2.0

package import NotifyBus
import Synchronization

/// Where the bridge's threads meet: those of the center bring names, that of the broker takes them, and the main thread
/// answers questions and ends it.
package final class Exchange: Sendable {
    private struct State {
        var outgoing = MergingQueue(mergesAll: true)
        var waitsForNames = false
        var isEnding = false
        var end: End?
        var status = BridgeStatus()
    }

    /// Why the thread of the broker has ended.
    package enum End: Sendable, Equatable {
        case asTold
        /// It makes no sense to go on, with the reason.
        case refused(String)
    }

    private let state = Mutex(State())
    /// Wakes the thread of the broker.
    let brokerWakeUp: WakeUp
    /// Wakes the main thread.
    let mainWakeUp: WakeUp

    package init() throws(ConfigurationError) {
        brokerWakeUp = try WakeUp()
        mainWakeUp = try WakeUp()
    }

    /// Takes a name that was posted on the bus.
    package func export(_ name: NotifyName) {
        let wakes = state.withLock { state in
            switch state.outgoing.append(name) {
            case .queued: break
            case .merged: state.status.merged += 1
            case .lost: state.status.lost += 1
            }
            defer { state.waitsForNames = false }
            return state.waitsForNames
        }
        if wakes { brokerWakeUp.signal() }
    }

    /// The next name for the broker; nil if there is none: then the thread of the broker is woken when there is.
    func nextExport() -> NotifyName? {
        state.withLock { state in
            let name = state.outgoing.takeFirst()
            state.waitsForNames = name == nil
            return name
        }
    }

    var hasNoExports: Bool { state.withLock { $0.outgoing.isEmpty } }

    /// Whether this name waits for the broker.
    func isWaiting(_ name: NotifyName) -> Bool {
        state.withLock { $0.outgoing.contains(name) }
    }

    /// The broker can be given names from now on.
    func goOnline() {
        state.withLock { state in
            state.outgoing.takeIndividually()
            state.status.isConnected = true
            state.status.since = UInt64(Clock.wall / 1_000)
        }
    }

    /// The broker is away: names merge.
    func goOffline() {
        state.withLock { state in
            state.waitsForNames = false
            state.status.merged += state.outgoing.mergeAll()
            if state.status.isConnected { state.status.since = UInt64(Clock.wall / 1_000) }
            state.status.isConnected = false
        }
    }

    /// Has the thread of the broker write what waits, if the broker takes it, and end.
    package func endBroker() {
        state.withLock { $0.isEnding = true }
        brokerWakeUp.signal()
    }

    var isEnding: Bool { state.withLock { $0.isEnding } }

    /// The thread of the broker has ended.
    func ended(_ end: End) {
        state.withLock { $0.end = end }
        mainWakeUp.signal()
    }

    /// Nil while the thread of the broker runs.
    package var end: End? { state.withLock { $0.end } }

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

/// What `org.notifybus.Bridge1.Status` tells.
package struct BridgeStatus: Sendable {
    package var isConnected = false
    /// Since when it is connected or not, in microseconds since 1970.
    package var since = UInt64(Clock.wall / 1_000)
    /// Names that went to the broker.
    package var sent = 0
    /// Names from the broker that were posted.
    package var received = 0
    /// Names, in both directions, that were merged with an equal one that waited.
    package var merged = 0
    /// Names, in both directions, that found the queue full of others.
    package var lost = 0
    /// Names that wait, in both directions.
    package var waiting = 0
    /// Messages that are no name, or one that no line of `import` allows.
    package var refused = 0
    /// Messages that had come before, or were this bridge's own.
    package var duplicates = 0
    /// Each filter and what the broker said of it.
    package var filters: [String] = []

    package init() {}
}

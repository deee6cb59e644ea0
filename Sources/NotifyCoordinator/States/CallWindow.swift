// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Which connections are being asked something, and which have to wait until they are told their state.
///
/// A bus lets a connection wait for a limited number of answers: a default system bus for 128.
struct CallWindow {
    private static let limit = 64

    /// A call that a connection has yet to answer.
    enum Call: Hashable {
        case state(ConnectionID)
        /// All that was delivered to it.
        case delivery(ConnectionID)
    }

    /// Until when an answer counts as under way, in nanoseconds of the monotonic clock.
    private var underWay: [Call: Int64] = [:]
    private var waiting: [(id: ConnectionID, state: LifecycleState)] = []
    private var head = 0

    mutating func enqueue(_ id: ConnectionID, _ state: LifecycleState) {
        waiting.append((id, state))
    }

    /// A connection was delivered something. That does not wait: it takes the place of the call that it follows.
    mutating func delivers(to id: ConnectionID, now: Int64) {
        underWay[.delivery(id)] = now + ChangeRequest.limit
    }

    mutating func hasAnswered(_ call: Call) {
        underWay[call] = nil
    }

    /// The next connection that can be told.
    mutating func next(now: Int64) -> (id: ConnectionID, state: LifecycleState)? {
        guard head < waiting.count else { return nil }
        if underWay.count >= CallWindow.limit {
            // One that does not answer must not hold up the others for ever.
            underWay = underWay.filter { $0.value > now }
            guard underWay.count < CallWindow.limit else { return nil }
        }
        let entry = waiting[head]
        head += 1
        if head == waiting.count {
            waiting.removeAll(keepingCapacity: head <= 64)
            head = 0
        }
        underWay[.state(entry.id)] = now + ChangeRequest.limit
        return entry
    }
}

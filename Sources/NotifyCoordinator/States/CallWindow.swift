// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Which connections have a pending call, and which must wait before they can be informed of their state.
///
/// A bus lets a connection wait for a limited number of replies: a default system bus for 128.
struct CallWindow {
    private static let limit = 64

    /// A call to which a connection has yet to reply.
    enum Call: Hashable {
        case state(ConnectionID)
        /// All that was delivered to it.
        case delivery(ConnectionID)
    }

    /// Until when a reply counts as pending, in nanoseconds of the monotonic clock.
    private var underWay: [Call: Int64] = [:]
    private var waiting: [(id: ConnectionID, state: LifecycleState)] = []
    private var head = 0

    mutating func enqueue(_ id: ConnectionID, _ state: LifecycleState) {
        waiting.append((id, state))
    }

    /// Something was delivered to a connection. That does not wait: it takes over the slot of the call that it follows.
    mutating func delivers(to id: ConnectionID, now: Int64) {
        underWay[.delivery(id)] = now + ChangeRequest.limit
    }

    mutating func hasAnswered(_ call: Call) {
        underWay[call] = nil
    }

    /// The next connection that can be informed.
    mutating func next(now: Int64) -> (id: ConnectionID, state: LifecycleState)? {
        guard head < waiting.count else { return nil }
        if underWay.count >= CallWindow.limit {
            // One that does not reply must not hold up the others forever.
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

// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Which connections are being told their state, and which have to wait for that.
///
/// A bus lets a connection wait for a limited number of answers: a default system bus for 128.
struct CallWindow {
    private static let limit = 64

    /// Until when the answer of a connection counts as under way, in nanoseconds of the monotonic clock.
    private var underWay: [ConnectionID: Int64] = [:]
    private var waiting: [(id: ConnectionID, state: LifecycleState)] = []
    private var head = 0

    mutating func enqueue(_ id: ConnectionID, _ state: LifecycleState) {
        waiting.append((id, state))
    }

    mutating func hasAnswered(_ id: ConnectionID) {
        underWay[id] = nil
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
        underWay[entry.id] = now + ChangeRequest.limit
        return entry
    }
}

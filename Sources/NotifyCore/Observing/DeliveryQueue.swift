// SPDX-License-Identifier: Apache-2.0

/// The names that wait for a callback, and whether whoever runs it knows that something waits.
package struct DeliveryQueue<Name: Coalescing> {
    private var names: CoalescingQueue<Name>
    /// Whether it was told, and has not found the queue empty since.
    private var isAnnounced = false

    package init(_ names: CoalescingQueue<Name> = CoalescingQueue()) { self.names = names }

    package var count: Int { names.count }

    /// - Returns: also whether to tell whoever runs the callback.
    package mutating func enqueue(_ name: Name) -> (outcome: CoalescingQueue<Name>.Outcome, mustAnnounce: Bool) {
        defer { isAnnounced = true }
        return (names.enqueue(name), !isAnnounced)
    }

    /// Takes the next name; nil ends the turn of whoever runs the callback.
    package mutating func takeNext() -> Name? {
        if let name = names.popFirst() { return name }
        isAnnounced = false
        return nil
    }

    package mutating func removeAll() {
        names.removeAll()
    }
}

// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// Names that were sent to the broker, until it is known to have them. QoS 0 is not acknowledged, and data written to a
/// connection that then breaks is lost. A broker handles what a client sends in order, so its answer to a later
/// question, the barrier, means that it has everything before it.
package struct Confirmations: Sendable {
    /// A name and the number of its stamp.
    package struct Sent: Sendable, Equatable {
        package let name: NotifyName
        package let sequence: UInt64

        package init(name: NotifyName, sequence: UInt64) {
            (self.name, self.sequence) = (name, sequence)
        }
    }

    /// The most that may be unconfirmed: receivers know an origin's last 1,024 stamps, and ignore duplicates.
    package static let capacity = StampWindow.depth
    /// After this many names the broker is asked, even if more are queued.
    private static let portion = 256

    /// The names covered by the pending barrier.
    private var asked: [Sent] = []
    private var isAsking = false
    private var later: [Sent] = []
    /// How many may be unconfirmed now.
    private var window = capacity

    package init() {}

    package var isEmpty: Bool { asked.isEmpty && later.isEmpty }
    package var isFull: Bool { asked.count + later.count >= window }

    package mutating func append(_ sent: Sent) {
        later.append(sent)
    }

    /// From now on one at a time, then two and so on, each time after all before have been confirmed: if the broker ends
    /// the connection because of one of them, few others are in doubt.
    package mutating func slowDown() { window = 1 }

    /// Whether it is time for a barrier. If so, its answer is expected from now on.
    ///
    /// - Parameter isLast: whether no more names are queued.
    package mutating func startsBarrier(isLast: Bool) -> Bool {
        guard !isAsking, !later.isEmpty, isLast || isFull || later.count >= Self.portion else { return false }
        (asked, later, isAsking) = (later, [], true)
        return true
    }

    /// The barrier was answered.
    package mutating func confirm() {
        (asked, isAsking) = ([], false)
        window = min(window * 2, Self.capacity)
    }

    /// Removes and returns the names to send again on another connection: the last of each.
    package mutating func takeUnconfirmed() -> [Sent] {
        defer { (asked, later, isAsking) = ([], [], false) }
        var seen: Set<NotifyName> = []
        return (asked + later).reversed().filter { seen.insert($0.name).inserted }.reversed()
    }
}

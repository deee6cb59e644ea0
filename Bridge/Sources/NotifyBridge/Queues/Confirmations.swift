// SPDX-License-Identifier: Apache-2.0

package import NotifyBus

/// Names that were given to the broker, until it is known that it has them: QoS 0 is not acknowledged, and what was
/// written into a connection that then breaks is lost. A broker handles what a client sends in order, so its answer to a
/// later question, the barrier, says that it has all before it.
package struct Confirmations: Sendable {
    /// A name and the number of its stamp.
    package struct Sent: Sendable, Equatable {
        package let name: NotifyName
        package let sequence: UInt64

        package init(name: NotifyName, sequence: UInt64) {
            (self.name, self.sequence) = (name, sequence)
        }
    }

    /// No more than this is on its way: those who hear a name know its last 1,024 stamps, and leave out what comes twice.
    package static let capacity = StampWindow.depth
    /// After so many names the broker is asked, even if more wait.
    private static let portion = 256

    /// What the barrier that is under way answers for.
    private var asked: [Sent] = []
    private var isAsking = false
    private var later: [Sent] = []

    package init() {}

    package var isFull: Bool { asked.count + later.count >= Self.capacity }

    package mutating func append(_ sent: Sent) {
        later.append(sent)
    }

    /// Whether it is time for a barrier; if so, the answer is expected from now on.
    ///
    /// - Parameter isLast: whether no more names wait.
    package mutating func startsBarrier(isLast: Bool) -> Bool {
        guard !isAsking, !later.isEmpty, isLast || later.count >= Self.portion else { return false }
        (asked, later, isAsking) = (later, [], true)
        return true
    }

    /// The barrier was answered.
    package mutating func confirm() {
        (asked, isAsking) = ([], false)
    }

    /// Takes out what is to be sent again by another connection: of each name the last.
    package mutating func takeUnconfirmed() -> [Sent] {
        defer { self = Confirmations() }
        var seen: Set<NotifyName> = []
        return (asked + later).reversed().filter { seen.insert($0.name).inserted }.reversed()
    }
}

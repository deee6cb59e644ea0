// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// Names that the broker does not take, so that each costs a line and not the others' way.
///
/// MQTT 5 has no answer to a message of QoS 0. A broker that does not take one ends the connection, which all names share.
package struct Refusals: Sendable {
    /// How many are remembered. An older one is tried again if it is posted again.
    package static let capacity = 1_024

    private var names: Set<NotifyName> = []
    private var order: [NotifyName] = []
    /// The first name that was unconfirmed when the broker ended the last connection.
    private var suspect: NotifyName?

    package init() {}

    package func contains(_ name: NotifyName) -> Bool { names.contains(name) }

    /// - Returns: whether it is new.
    @discardableResult
    package mutating func insert(_ name: NotifyName) -> Bool {
        guard names.insert(name).inserted else { return false }
        order.append(name)
        if order.count > Self.capacity { names.remove(order.removeFirst()) }
        return true
    }

    /// The broker has ended a connection, possibly because of what it was sent.
    ///
    /// - Returns: the name because of which it has: the first unconfirmed one for the second time in a row, now with no
    ///   other behind it.
    package mutating func noteEnd(unconfirmed: [NotifyName]) -> NotifyName? {
        guard unconfirmed.count == 1, unconfirmed.first == suspect, let suspect else {
            suspect = unconfirmed.first
            return nil
        }
        self.suspect = nil
        insert(suspect)
        return suspect
    }

    /// Something was confirmed, or the connection has ended for another reason.
    package mutating func acquit() { suspect = nil }
}

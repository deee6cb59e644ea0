// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// The names posted while a connection was not listening: one bit each, in the order in which they were first posted.
package struct PendingNames: Hashable {
    /// The same limit as in every other queue of this package.
    package static let limit = 65_536

    private var order: [NotifyName] = []
    private var known: Set<NotifyName> = []

    package init() {}

    package var count: Int { order.count }
    package var isEmpty: Bool { order.isEmpty }

    /// In the order in which they were first posted.
    package var names: [NotifyName] { order }

    /// Whether there is room for another name.
    package var hasRoom: Bool { order.count < PendingNames.limit }

    package func contains(_ name: NotifyName) -> Bool { known.contains(name) }

    /// - Returns: false if there is no room for another name.
    package mutating func insert(_ name: NotifyName) -> Bool {
        if known.contains(name) { return true }
        guard order.count < PendingNames.limit else { return false }
        known.insert(name)
        order.append(name)
        return true
    }

    package mutating func removeAll() {
        self = PendingNames()
    }

    package mutating func remove(_ isUnwanted: (NotifyName) -> Bool) {
        order.removeAll { name in
            guard isUnwanted(name) else { return false }
            known.remove(name)
            return true
        }
    }

    /// Takes everything.
    package mutating func take() -> [NotifyName] {
        defer { removeAll() }
        return order
    }
}

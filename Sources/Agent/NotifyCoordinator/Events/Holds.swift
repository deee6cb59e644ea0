// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// The holds that make sleep or shutdown wait until a program is done with its work for that. Each belongs to a
/// connection, and ends with it.
package struct Holds: Sendable {
    /// The events that can be held.
    package static let names: Set<NotifyName> = [LoginEvents.willSleep, LoginEvents.willShutDown]

    private var holders: [NotifyName: Set<String>] = [:]
    /// The number of the last time that each was posted: unique, also among agents that follow each other.
    private var numbers: [NotifyName: UInt64] = [:]
    /// Those that are not done with the last time yet.
    private var pending: [NotifyName: Set<String>] = [:]

    package init() {}

    /// A connection wants to be waited for from the next time on.
    ///
    /// - Returns: the number of the last time, which may be under way.
    package mutating func hold(_ name: NotifyName, by connection: String) -> UInt64 {
        holders[name, default: []].insert(connection)
        return numbers[name] ?? 0
    }

    /// A connection is done with what it does for the time with that number.
    package mutating func letGo(_ name: NotifyName, _ number: UInt64, by connection: String) {
        if number == numbers[name] { pending[name]?.remove(connection) }
    }

    /// The event is being posted.
    ///
    /// - Parameter hears: whether a connection hears it: one in the background is not waited for.
    package mutating func begin(_ name: NotifyName, now: UInt64, hears: (String) -> Bool) {
        numbers[name] = max(now, (numbers[name] ?? 0) + 1)
        pending[name] = holders[name]?.filter(hears) ?? []
    }

    /// Whether a connection is not done yet.
    package func isHeld(_ name: NotifyName) -> Bool { pending[name]?.isEmpty == false }

    /// A connection has ended.
    package mutating func forget(_ connection: String) {
        for name in holders.keys {
            holders[name]?.remove(connection)
            pending[name]?.remove(connection)
        }
    }
}

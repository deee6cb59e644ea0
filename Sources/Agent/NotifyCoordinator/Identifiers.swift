// SPDX-License-Identifier: Apache-2.0

/// A registered observing connection. Numbers are never reused.
package struct ConnectionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt64

    package init(_ number: UInt64) { self.number = number }

    package var description: String { "#\(number)" }

    package static func < (left: ConnectionID, right: ConnectionID) -> Bool { left.number < right.number }
}

/// A process, as distinct from any that gets its number later.
package struct ProcessID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let pid: Int32
    /// When it started, in the unit of `/proc/PID/stat`.
    package let startTime: UInt64
    /// The user that it runs as.
    package let user: UInt32

    package init(pid: Int32, startTime: UInt64, user: UInt32) {
        self.pid = pid
        self.startTime = startTime
        self.user = user
    }

    package var description: String { "\(pid)" }

    package static func < (left: ProcessID, right: ProcessID) -> Bool {
        (left.pid, left.startTime, left.user) < (right.pid, right.startTime, right.user)
    }
}

/// A call that is to be answered.
package struct CallID: Hashable, Sendable {
    package let number: UInt64

    package init(_ number: UInt64) { self.number = number }
}

/// A question or request to the bus about rules, identified in the reply.
package struct Ticket: Hashable, Comparable, Sendable {
    package let number: UInt64

    package init(_ number: UInt64) { self.number = number }

    package static func < (left: Ticket, right: Ticket) -> Bool { left.number < right.number }
}

/// The time of an event. The coordinator has no clock, so each event brings the time along.
package struct Timestamp: Sendable {
    /// Nanoseconds of the monotonic clock.
    package let nanoseconds: Int64
    /// Seconds since 1970, for display.
    package let wallClock: UInt64

    package init(nanoseconds: Int64, wallClock: UInt64 = 0) {
        self.nanoseconds = nanoseconds
        self.wallClock = wallClock
    }
}

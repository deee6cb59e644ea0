// SPDX-License-Identifier: Apache-2.0

import NotifyCore
package import NotifyNames

/// A source of events: it determines the state behind its names.
package protocol EventSource: Source {
    /// The wanted names, before `begin` and whenever they change.
    func want(_ names: Set<NotifyName>)
}

extension EventSource {
    package func want(_ names: Set<NotifyName>) {}
}

/// The interface of a source of events to the agent, for use on any thread until it is closed.
package final class EventOutlet: Sendable {
    private let isOpen = Monitor(true)
    private let deliver: @Sendable (EventNews) -> Void

    package init(_ deliver: @escaping @Sendable (EventNews) -> Void) { self.deliver = deliver }

    package func close() { isOpen.withLock { $0 = false } }

    package func say(_ news: EventNews) {
        // With the lock held: after `close` nothing more is reported.
        isOpen.withLock { if $0 { deliver(news) } }
    }

    /// Something has happened.
    package func post(_ name: NotifyName, state: UInt64? = nil) { say(.found([EventChange(name, state: state)])) }

    /// The current state, without counting as a change.
    package func note(_ name: NotifyName, state: UInt64) {
        say(.found([EventChange(name, state: state, isPosted: false)]))
    }
}

/// A state, and its last known value: a source that comes back posts only what has changed in the meantime.
package struct LastState {
    private let name: NotifyName
    private var value: UInt64?

    package init(_ name: NotifyName) { self.name = name }

    package mutating func say(_ new: UInt64, by outlet: EventOutlet) {
        defer { value = new }
        if let value, value != new { outlet.post(name, state: new) } else { outlet.note(name, state: new) }
    }
}

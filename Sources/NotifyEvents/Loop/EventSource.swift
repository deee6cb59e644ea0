// SPDX-License-Identifier: Apache-2.0

import NotifyCore
package import NotifyNames

/// A source of events: it finds out what its names stand for.
package protocol EventSource: Source {
    /// The names that somebody wants, before `begin` and whenever they change.
    func want(_ names: Set<NotifyName>)
}

extension EventSource {
    package func want(_ names: Set<NotifyName>) {}
}

/// By what a source of events speaks to the agent, from any thread, until it is closed.
package final class EventOutlet: Sendable {
    private let isOpen = Monitor(true)
    private let deliver: @Sendable (EventNews) -> Void

    package init(_ deliver: @escaping @Sendable (EventNews) -> Void) { self.deliver = deliver }

    package func close() { isOpen.withLock { $0 = false } }

    package func say(_ news: EventNews) {
        // Under the lock: after `close` nothing more comes.
        isOpen.withLock { if $0 { deliver(news) } }
    }

    /// Something has happened.
    package func post(_ name: NotifyName, state: UInt64? = nil) { say(.found([EventChange(name, state: state)])) }

    /// It is so, and has not just become so.
    package func note(_ name: NotifyName, state: UInt64) {
        say(.found([EventChange(name, state: state, isPosted: false)]))
    }
}

/// A state, and what it was when it was last known: a source that comes back posts only what has changed meanwhile.
package struct LastState {
    private let name: NotifyName
    private var value: UInt64?

    package init(_ name: NotifyName) { self.name = name }

    package mutating func say(_ new: UInt64, by outlet: EventOutlet) {
        defer { value = new }
        if let value, value != new { outlet.post(name, state: new) } else { outlet.note(name, state: new) }
    }
}

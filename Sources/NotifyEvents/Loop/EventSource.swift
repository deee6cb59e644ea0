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

/// How a source of events reports, until it is closed.
package final class EventReporter {
    private var isOpen = true
    private let deliver: (EventNews) -> Void

    package init(_ deliver: @escaping (EventNews) -> Void) { self.deliver = deliver }

    package func close() { isOpen = false }

    package func report(_ news: EventNews) {
        if isOpen { deliver(news) }
    }

    /// Something has happened.
    package func post(_ name: NotifyName, state: UInt64? = nil) { report(.found([EventChange(name, state: state)])) }

    /// The current state, without counting as a change.
    package func note(_ name: NotifyName, state: UInt64) {
        report(.found([EventChange(name, state: state, isPosted: false)]))
    }
}

/// A state, and its last known value: a source that comes back posts only what has changed in the meantime.
package struct LastState {
    private let name: NotifyName
    private var value: UInt64?

    package init(_ name: NotifyName) { self.name = name }

    package mutating func report(_ new: UInt64, to reporter: EventReporter) {
        defer { value = new }
        if let value, value != new { reporter.post(name, state: new) } else { reporter.note(name, state: new) }
    }
}

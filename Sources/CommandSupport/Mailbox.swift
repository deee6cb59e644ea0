// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization

/// What the thread that reads the bus leaves for the main thread, and the eventfd that wakes it.
package final class Mailbox<Message: Sendable>: Sendable {
    private struct Contents {
        var messages: ArraySlice<Message> = []
        var refused = 0
    }

    private let wakeup: WakeDescriptor

    /// Readable when a message may be there.
    package var descriptor: Int32 { wakeup.descriptor }

    // Held for the moment of putting in or taking out.
    private let contents = Mutex(Contents())

    package init() throws(ResourceError) {
        wakeup = try .ofCommand()
    }

    package func put(_ message: Message) {
        contents.withLock { $0.messages.append(message) }
        wakeup.signal()
    }

    /// Puts in a message that may be refused, because so many wait that nobody can be looking at them.
    package func offer(_ message: Message) {
        contents.withLock { contents in
            if contents.messages.count < 65_536 { contents.messages.append(message) } else { contents.refused += 1 }
        }
        wakeup.signal()
    }

    /// The oldest message, if there is one.
    package func take() -> Message? {
        contents.withLock { $0.messages.popFirst() }
    }

    /// How many messages were refused since the last call.
    package func takeRefused() -> Int {
        contents.withLock { contents in
            defer { contents.refused = 0 }
            return contents.refused
        }
    }

    /// Makes the descriptor unreadable. Look for messages after this, not before.
    package func clear() {
        wakeup.clear()
    }

    /// Sleeps until there is a message, and takes it; nil if there is none by the deadline.
    package func next(until deadline: Deadline) -> Message? {
        while true {
            if let message = take() { return message }
            var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&source, 1, deadline.milliseconds) == 0, deadline.hasPassed { return take() }
            clear()
        }
    }
}

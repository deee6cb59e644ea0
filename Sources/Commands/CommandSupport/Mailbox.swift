// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization

/// What the thread that reads the bus passes on to the main thread, and the eventfd that wakes it.
package final class Mailbox<Message: Sendable>: Sendable {
    private struct Contents {
        var messages: ArraySlice<Message> = []
        var refused = 0
    }

    private let wakeup: WakeDescriptor

    /// Readable when there may be a message.
    package var descriptor: Int32 { wakeup.descriptor }

    // Held only while adding or removing.
    private let contents = Mutex(Contents())

    package init() throws(CommandFailure) {
        wakeup = try .ofCommand()
    }

    package func put(_ message: Message) {
        contents.withLock { $0.messages.append(message) }
        wakeup.signal()
    }

    /// Adds a message that may be refused if so many are queued that the main thread can't be reading them.
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

    /// How many messages have been refused since the last call.
    package func takeRefused() -> Int {
        contents.withLock { contents in
            defer { contents.refused = 0 }
            return contents.refused
        }
    }

    /// Makes the descriptor unreadable. Check for messages after this, not before.
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

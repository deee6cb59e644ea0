// SPDX-License-Identifier: Apache-2.0

import CLinux
import CommandSupport
import Glibc
import Synchronization

/// What the thread that reads the bus leaves for the main thread, and the eventfd that wakes it.
final class Mailbox<Message: Sendable>: Sendable {
    private struct Contents {
        var messages: ArraySlice<Message> = []
        var refused = 0
    }

    /// Readable when a message may be there.
    let descriptor: Int32

    // Held for the moment of putting in or taking out.
    private let contents = Mutex(Contents())

    init() throws(LifecycleFailure) {
        descriptor = linux_eventfd()
        if descriptor < 0 {
            throw LifecycleFailure("cannot create an eventfd: \(Diagnostics.text(of: errno))")
        }
    }

    deinit {
        close(descriptor)
    }

    func put(_ message: Message) {
        contents.withLock { $0.messages.append(message) }
        wake()
    }

    /// Puts in a message that may be refused, because so many wait that nobody can be looking at them.
    func offer(_ message: Message) {
        contents.withLock { contents in
            if contents.messages.count < 65_536 { contents.messages.append(message) } else { contents.refused += 1 }
        }
        wake()
    }

    /// The oldest message, if there is one.
    func take() -> Message? {
        contents.withLock { $0.messages.popFirst() }
    }

    /// How many messages were refused since the last call.
    func takeRefused() -> Int {
        contents.withLock { contents in
            defer { contents.refused = 0 }
            return contents.refused
        }
    }

    /// Makes the descriptor unreadable. Look for messages after this, not before.
    func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }

    /// Sleeps until there is a message, and takes it; nil if there is none by the deadline.
    func next(until deadline: Deadline) -> Message? {
        while true {
            if let message = take() { return message }
            var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&source, 1, deadline.milliseconds) == 0, deadline.hasPassed { return take() }
            clear()
        }
    }

    private func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Why a call failed, as a sentence that a person can act on. The module NotifyBus has the public form.
package struct NotifyBusError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        private let name: String

        /// The name is empty, too long, not UTF-8, or contains a NUL.
        package static let invalidName = Code(name: "invalidName")
        /// No bus could be reached.
        package static let noBus = Code(name: "noBus")
        /// The connection to the bus was lost; the center is trying to reconnect.
        package static let disconnected = Code(name: "disconnected")
        /// The name belongs to someone else.
        package static let notPermitted = Code(name: "notPermitted")
        /// Too many names are waiting to be written to queue another one.
        package static let queueFull = Code(name: "queueFull")
        /// The bus allows no more match rules, not even one for all names.
        package static let limitExceeded = Code(name: "limitExceeded")
        /// The task was cancelled.
        package static let cancelled = Code(name: "cancelled")
        /// It did not complete within the given time.
        package static let timedOut = Code(name: "timedOut")
        /// The program runs in a sandbox that hides other programs on the bus.
        package static let sandboxed = Code(name: "sandboxed")
        /// There is no lifecycle agent, or it does not answer.
        package static let noAgent = Code(name: "noAgent")
        /// This process was forked from one that used a bus, and has not called exec(3).
        package static let forked = Code(name: "forked")
        /// The center was closed.
        package static let closed = Code(name: "closed")
        /// A callback waited for another to end that waits for this one.
        package static let deadlock = Code(name: "deadlock")
        /// Anything else, such as running out of memory or descriptors.
        package static let failed = Code(name: "failed")

        /// The name of the code, for logs.
        package var description: String { name }
    }

    /// The kind of failure.
    package let code: Code
    /// What went wrong and what to do about it, as one or two sentences. The wording may change.
    package let description: String
    /// The error number of the underlying system call; nil if there is none. See errno(3).
    package let errno: Int32?
    /// The name of the underlying D-Bus error, such as `org.freedesktop.DBus.Error.NoServer`; nil if there is none.
    package let busErrorName: String?

    package init(_ code: Code, _ description: String, errno: Int32? = nil, busErrorName: String? = nil) {
        self.code = code
        self.description = description
        self.errno = errno
        self.busErrorName = busErrorName
    }
}

/// The text for an error number, from strerror(3).
package func describe(errno number: Int32) -> String {
    strerror(number).map { String(cString: $0) } ?? "error \(number)"
}

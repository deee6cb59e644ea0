// SPDX-License-Identifier: Apache-2.0

/// Why a call of this library failed, in a sentence that a person can act on.
public struct NotifyBusError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. More may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private let name: String

        /// The name is empty, too long, not UTF-8, or contains a NUL.
        public static let invalidName = Code(name: "invalidName")
        /// No bus could be reached.
        public static let noBus = Code(name: "noBus")
        /// The bus was there and is away now; the center is trying to reach it again.
        public static let disconnected = Code(name: "disconnected")
        /// The name belongs to someone else.
        public static let notPermitted = Code(name: "notPermitted")
        /// So many names are waiting to be written that no new one can be taken.
        public static let queueFull = Code(name: "queueFull")
        /// The bus allows no more match rules, not even one for all names.
        public static let limitExceeded = Code(name: "limitExceeded")
        /// It was not done within the time that was given.
        public static let timedOut = Code(name: "timedOut")
        /// The program runs in a sandbox that hides other programs on the bus.
        public static let sandboxed = Code(name: "sandboxed")
        /// There is no lifecycle agent.
        public static let noAgent = Code(name: "noAgent")
        /// This process was made by fork(2) from one that used a bus, and has not called exec(3).
        public static let forked = Code(name: "forked")
        /// The center was closed.
        public static let closed = Code(name: "closed")
        /// Anything else, such as memory or descriptors that ran out.
        public static let failed = Code(name: "failed")

        /// The name of the code, for logs.
        public var description: String { name }
    }

    /// The kind of failure.
    public let code: Code
    /// What went wrong and what to do, as one sentence or two. Its wording may change.
    public let description: String
    /// The number of the system call's error underneath; nil if there is none. See errno(3).
    public let errno: Int32?
    /// The name of the D-Bus error underneath, such as `org.freedesktop.DBus.Error.NoServer`; nil if there is none.
    public let busErrorName: String?

    package init(_ code: Code, _ description: String, errno: Int32? = nil, busErrorName: String? = nil) {
        self.code = code
        self.description = description
        self.errno = errno
        self.busErrorName = busErrorName
    }

    /// Whether two errors are of the same kind and have the same reason underneath, whatever their descriptions say.
    public static func == (left: NotifyBusError, right: NotifyBusError) -> Bool {
        left.code == right.code && left.errno == right.errno && left.busErrorName == right.busErrorName
    }

    /// Feeds into a hasher what equality looks at.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(errno)
        hasher.combine(busErrorName)
    }
}

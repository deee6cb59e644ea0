// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// Why a call of this library failed, as a sentence that a person can act on.
///
/// Two errors are equal if everything that they show is; compare ``code`` to find out what kind of error it is.
public struct NotifyBusError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        package let core: CoreError.Code

        package init(_ core: CoreError.Code) { self.core = core }

        /// The name is empty, too long, not UTF-8, or contains a NUL.
        public static let invalidName = Code(.invalidName)
        /// No bus could be reached.
        public static let noBus = Code(.noBus)
        /// The connection to the bus was lost; the center is trying to reconnect.
        public static let disconnected = Code(.disconnected)
        /// The name belongs to someone else.
        public static let notPermitted = Code(.notPermitted)
        /// Too many names are waiting to be written to queue another one.
        public static let queueFull = Code(.queueFull)
        /// The bus allows no more match rules, not even one for all names.
        public static let limitExceeded = Code(.limitExceeded)
        /// The task was cancelled.
        public static let cancelled = Code(.cancelled)
        /// It did not complete within the given time.
        public static let timedOut = Code(.timedOut)
        /// The program runs in a sandbox that hides other programs on the bus.
        public static let sandboxed = Code(.sandboxed)
        /// There is no lifecycle agent, or it does not answer.
        public static let noAgent = Code(.noAgent)
        /// This process was forked from one that used a bus, and has not called exec(3).
        public static let forked = Code(.forked)
        /// The center was closed.
        public static let closed = Code(.closed)
        /// A callback waited for another to end that waits for this one.
        public static let deadlock = Code(.deadlock)
        /// Anything else, such as running out of memory or descriptors.
        public static let failed = Code(.failed)

        /// The name of the code, for logs.
        public var description: String { core.description }

        /// Whether an error is a ``NotifyBusError`` with this code, so that a `catch` can name the code:
        ///
        /// ```swift
        /// do {
        ///     try center.post(.backupDone)
        /// } catch NotifyBusError.Code.noBus {
        ///     print("there is no bus")
        /// }
        /// ```
        public static func ~= (code: Code, error: any Error) -> Bool {
            (error as? NotifyBusError)?.code == code
        }
    }

    package let core: CoreError

    package init(_ core: CoreError) { self.core = core }

    /// The kind of failure.
    public var code: Code { Code(core.code) }
    /// What went wrong and what to do about it, as one or two sentences. The wording may change.
    public var description: String { core.description }
    /// The error number of the underlying system call; nil if there is none. See errno(3).
    public var errno: Int32? { core.errno }
    /// The name of the underlying D-Bus error, such as `org.freedesktop.DBus.Error.NoServer`; nil if there is none.
    public var busErrorName: String? { core.busErrorName }

    /// Creates an error, for a test double of a center.
    ///
    /// - Parameters:
    ///   - code: the kind of failure.
    ///   - description: what went wrong and what to do about it, as one or two sentences.
    ///   - errno: the error number of the underlying system call.
    ///   - busErrorName: the name of the underlying D-Bus error.
    public init(_ code: Code, _ description: String, errno: Int32? = nil, busErrorName: String? = nil) {
        core = CoreError(code.core, description, errno: errno, busErrorName: busErrorName)
    }
}

extension Result where Failure == CoreError {
    /// The same with the public error.
    var published: Result<Success, NotifyBusError> { mapError { NotifyBusError($0) } }
}

// SPDX-License-Identifier: Apache-2.0

public import NotifyBus
import NotifyCore

/// An error or partial failure of one of Core Foundation's functions for centers, which return nothing; see
/// ``CFNotificationCenter/onError``.
public struct CFNotificationError: Error, Sendable, CustomStringConvertible {
    /// The function that was called, such as `CFNotificationCenterPostNotification`.
    public let function: String
    /// The name that was passed to it.
    public let name: CFNotificationName?
    /// The kind of failure; nil if a required argument was nil, or Linux has no such center.
    public let code: NotifyBus.NotifyBusError.Code?
    /// What went wrong and what to do about it, on one line.
    public let description: String

    enum Cause {
        /// A required argument was nil.
        case missing(String)
        /// It was not done and will not be retried.
        case refused(CFNotificationName, CoreError)
        /// It will be done once it is possible.
        case delayed(CFNotificationName, CoreError)
        /// It was done, but the observer will hear less than it should.
        case limited(CFNotificationName, reason: String)
        /// Nothing ever will be done.
        case noDistributedCenter
    }

    init(_ function: String, _ cause: Cause) {
        self.function = function
        switch cause {
        case .missing(let argument):
            name = nil
            code = nil
            description = "\(function) requires \(argument), but was given nil."
        case .refused(let name, let error):
            self.name = name
            code = .init(error.code)
            description = "\(function) did nothing. \(error)"
        case .delayed(let name, let error):
            self.name = name
            code = .init(error.code)
            description = "\(function) cannot observe '\(name.rawValue)' yet, but keeps trying. \(error)"
        case .limited(let name, let reason):
            self.name = name
            code = .sandboxed
            description = "\(function) observes '\(name.rawValue)'. \(reason)"
        case .noDistributedCenter:
            name = nil
            code = nil
            description =
                "\(function) did nothing, and others won't either: Linux has no distributed center. "
                + "CFNotificationCenterGetDarwinNotifyCenter() carries names between programs."
        }
    }
}

extension CFNotificationCenter {
    /// Called for each failed call of one of the functions, on the calling thread, before the call returns. In a
    /// Flatpak that hides the bus it is also called for the first observed name, with the code `sandboxed`, and for the
    /// distributed center it is called once.
    ///
    /// Darwin's functions return nothing and report nothing. While this is nil, the default, each failure is written to
    /// standard error as one line, but at most once a minute for failures of the same kind.
    public static var onError: (@Sendable (CFNotificationError) -> Void)? {
        get { Reporter.handler }
        set { Reporter.handler = newValue }
    }
}

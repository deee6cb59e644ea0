// SPDX-License-Identifier: Apache-2.0

public import NotifyBus

/// What one of the functions of the Darwin notify center could not do, or not wholly. They return nothing; see
/// ``CFNotificationCenter/onError``.
public struct CFNotificationError: Error, Sendable, CustomStringConvertible {
    /// The function that was called, such as `CFNotificationCenterPostNotification`.
    public let function: String
    /// The name that it was given.
    public let name: CFNotificationName?
    /// The kind of failure; nil if an argument was nil that must not be.
    public let code: NotifyBusError.Code?
    /// What went wrong and what to do, on one line.
    public let description: String

    enum Cause {
        /// Something that must not be nil was.
        case missing(String)
        /// It was not done and will not be.
        case refused(CFNotificationName, NotifyBusError)
        /// It will be done when it can be.
        case delayed(CFNotificationName, NotifyBusError)
        /// It was done, but hears less than it should.
        case limited(CFNotificationName, reason: String)
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
            code = error.code
            description = "\(function) did nothing. \(error)"
        case .delayed(let name, let error):
            self.name = name
            code = error.code
            description = "\(function) cannot observe '\(name.rawValue)' yet, but keeps trying. \(error)"
        case .limited(let name, let reason):
            self.name = name
            code = .sandboxed
            description = "\(function) observes '\(name.rawValue)'. \(reason)"
        }
    }
}

extension CFNotificationCenter {
    /// Called for each call of one of the functions that failed, on the thread that made it, before it returns. In a
    /// Flatpak that hides the bus it is also called for the first name that is observed, with the code `sandboxed`.
    ///
    /// Darwin's functions return nothing, and say nothing. While this is nil, as it is to begin with, a failure is
    /// written to standard error, one line, and not again within a minute for a failure of the same kind.
    public static var onError: (@Sendable (CFNotificationError) -> Void)? {
        get { Reporter.handler }
        set { Reporter.handler = newValue }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import NotifyCore

/// Reports errors of functions that return nothing.
enum Reporter {
    /// For how many milliseconds a kind of failure is not reported again.
    private static let silence: Int64 = 60_000

    private struct Kind: Hashable {
        var function: String
        var code: String?
    }

    private struct State {
        var handler: (@Sendable (CFNotificationError) -> Void)?
        /// When each kind of failure may be reported again.
        var silent: [Kind: MonotonicTime] = [:]
    }

    private static let state = Monitor(State())

    static var handler: (@Sendable (CFNotificationError) -> Void)? {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    static func report(_ cause: CFNotificationError.Cause, by function: StaticString) {
        let error = CFNotificationError("\(function)", cause)
        let (handler, mayWrite) = state.withLock { state in
            if let handler = state.handler { return (Optional(handler), false) }
            let kind = Kind(function: error.function, code: error.code?.description)
            if let end = state.silent[kind], .now < end { return (nil, false) }
            state.silent[kind] = .now + silence
            return (nil, true)
        }
        handler?(error)
        if mayWrite { writeLine(error.description) }
    }

    /// A single write, so that lines of several threads stay intact. Control characters in a name must not break the
    /// line.
    private static func writeLine(_ text: String) {
        var line = Array(text.utf8.map { $0 < 0x20 || $0 == 0x7f ? UInt8(ascii: "?") : $0 })
        line.append(UInt8(ascii: "\n"))
        _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

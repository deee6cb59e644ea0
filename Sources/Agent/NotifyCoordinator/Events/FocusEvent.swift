// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The event that follows from the focus: each change of it once, whichever source reports it.
package struct FocusEvent {
    /// What is said.
    package enum Report: Equatable {
        case nothing
        /// No window has the focus, as some window managers say on the way from one window to another: it is to be
        /// looked at once more after ``pause``.
        case later
        case change(EventChange)
        /// No source knows which program has the focus.
        case unknown(String)
    }

    /// In milliseconds. openbox takes some on an idle machine, and more than 30 when ten programs want the processor.
    package static let pause: Int64 = 250

    private static let reason = "no source knows which program has the focus"

    /// The process that was said last; nil if that was none.
    private var last: UInt64?
    private var isKnown = false
    private var hasReported = false

    package init() {}

    /// - Parameters:
    ///   - names: the sources that may know.
    ///   - hasPaused: whether this is looked at once more.
    package mutating func take(_ sources: SourceTable, _ names: [String], hasPaused: Bool = false) -> Report {
        guard let foremost = sources.foremost else {
            // A source that has yet to report may know.
            guard names.allSatisfy(sources.isSettled), isKnown || !hasReported else { return .nothing }
            (isKnown, hasReported) = (false, true)
            return .unknown(FocusEvent.reason)
        }
        guard foremost.process != nil || names.allSatisfy(sources.isSettled) else { return .nothing }
        let new = UInt64(max(0, foremost.process?.pid ?? 0))
        guard new != last || !isKnown else { return .nothing }
        if new == 0, last != nil, isKnown, !hasPaused { return .later }
        defer { (last, isKnown, hasReported) = (new, true, true) }
        return .change(EventChange(SystemEvent.focus, state: new, isPosted: last != nil && last != new))
    }

    /// It is not wanted.
    package mutating func rest() { self = FocusEvent() }
}

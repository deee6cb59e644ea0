// SPDX-License-Identifier: Apache-2.0

/// Whether calls that wait have their turn, or what the bus has yet to pass on.
///
/// A bus keeps the calls of all programs in one queue, and only those that have been read can take turns. So when calls
/// wait and there is more to read, the bus is asked something, and none of them begins before it has answered: all has
/// then been read that it had before. That is for a while only, as a program may never stop calling.
///
/// It knows no bus and no clock: times are in nanoseconds.
package struct ReadingFirst: Sendable {
    package enum Step {
        /// A call may begin.
        case serve
        /// The bus is to be asked, and read until it has answered.
        case ask
        case read
    }

    private enum Phase {
        case unasked
        case reading(until: Int64)
        /// Calls may begin, whatever there is to read.
        case serving(until: Int64)
    }

    /// How long the bus is read first, and for how long calls then have their turns before it may be asked again.
    package static let longest: Int64 = 250_000_000

    private var phase = Phase.unasked

    package init() {}

    /// Until when no call begins unless the bus answers; nil if one may begin.
    package var end: Int64? { if case .reading(let end) = phase { end } else { nil } }

    /// What is next for calls that wait.
    ///
    /// - Parameter isBusy: whether there is more to read.
    package mutating func next(isBusy: Bool, now: Int64) -> Step {
        switch phase {
        case .reading(let end) where now < end: return .read
        case .serving(let end) where now < end: return .serve
        case .reading:
            phase = .serving(until: now + ReadingFirst.longest)
            return .serve
        case .serving, .unasked:
            phase = isBusy ? .reading(until: now + ReadingFirst.longest) : .unasked
            return isBusy ? .ask : .serve
        }
    }

    /// The bus has answered.
    package mutating func hasAnswered(now: Int64) {
        if case .reading = phase { phase = .serving(until: now + ReadingFirst.longest) }
    }
}

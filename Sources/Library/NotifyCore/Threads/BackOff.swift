// SPDX-License-Identifier: Apache-2.0

/// When to retry something that has failed: soon at first, then less and less often.
package struct BackOff {
    private let first: Int64
    private let last: Int64
    private var delay: Int64
    /// When to try, once scheduled.
    package private(set) var time: MonotonicTime?

    /// - Parameters:
    ///   - first: how long to wait the first time, in milliseconds. It doubles with each attempt.
    ///   - last: the longest wait. The default suits a bus.
    package init(first: Int64 = 20, last: Int64 = 5_000) {
        self.first = first
        self.last = last
        delay = first
    }

    /// How long to wait before the next attempt, in milliseconds.
    package mutating func next() -> Int64 {
        defer { delay = min(delay * 2, last) }
        return delay
    }

    /// Schedules the next attempt.
    package mutating func schedule() {
        time = .now + next()
    }

    /// Cancels the next attempt, without forgetting how often it has failed.
    package mutating func cancel() { time = nil }

    /// The attempt succeeded.
    package mutating func reset() {
        self = BackOff(first: first, last: last)
    }
}

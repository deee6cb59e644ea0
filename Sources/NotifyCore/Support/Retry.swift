// SPDX-License-Identifier: Apache-2.0

/// When to try to reach the bus again: soon at first, then less and less often, at least every five seconds.
struct Retry {
    private static let first: Int64 = 20
    private static let last: Int64 = 5_000

    private(set) var time: MonotonicTime?
    /// In milliseconds.
    private var delay = Retry.first

    mutating func schedule() {
        time = .now + delay
        delay = min(delay * 2, Retry.last)
    }

    mutating func reset() {
        self = Retry()
    }
}

// SPDX-License-Identifier: Apache-2.0

/// A number per second, and as many at once after a second of rest.
package struct RateLimit: Sendable {
    /// A second's worth.
    private let rate: Int64
    /// The remaining credit, in billionths of one.
    private var credit: Int64
    private var last: Int64

    /// - Parameter now: in nanoseconds of a monotonic clock.
    package init(rate: Int, now: Int64) {
        self.rate = Int64(rate)
        credit = Int64(rate) * 1_000_000_000
        last = now
    }

    /// Takes one if any is left.
    package mutating func take(now: Int64) -> Bool {
        let limit = rate * 1_000_000_000
        // More than a second fills it, whatever the rate.
        credit = now - last >= 1_000_000_000 ? limit : min(limit, credit + (now - last) * rate)
        last = now
        guard credit >= 1_000_000_000 else { return false }
        credit -= 1_000_000_000
        return true
    }

    /// How long until the next one is available, in nanoseconds, after ``take(now:)`` failed.
    package var wait: Int64 { (1_000_000_000 - credit + rate - 1) / rate }
}

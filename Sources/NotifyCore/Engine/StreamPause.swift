// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Lets a stream of posts accumulate a little, so that the bus need not wake the leader for each of them.
///
/// A busy bus would otherwise spend most of its time on that: with ten observers, dbus-daemon delivers twice as many
/// posts this way.
struct StreamPause {
    /// Batches that follow each other within this many nanoseconds form a stream.
    private static let interval: Int64 = 120_000
    /// With this many posts at once, the cost of waking up per post is small.
    private static let fullBatch = 4
    /// In nanoseconds. The kernel adds 50 µs, so a pause is below 0.1 ms. It is bounded, whereas sched_yield(2) may take
    /// until the bus has queued too much for us.
    private static let length = 40_000

    private var lastPosted = 0

    /// Pauses if a stream arrives.
    ///
    /// - Parameters:
    ///   - arrivals: how many posts the latest batch had.
    ///   - interval: how long after the batch before it arrived, in nanoseconds.
    ///   - posted: how many posts this center has made. One that makes some may be answering, and somebody waiting for
    ///     the answer.
    mutating func pauseIfNeeded(arrivals: Int, interval: Int64, posted: Int) {
        defer { lastPosted = posted }
        guard 1..<StreamPause.fullBatch ~= arrivals, interval < StreamPause.interval, posted == lastPosted else {
            return
        }
        var time = timespec(tv_sec: 0, tv_nsec: StreamPause.length)
        nanosleep(&time, nil)
    }
}

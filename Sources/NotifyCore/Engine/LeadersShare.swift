// SPDX-License-Identifier: Apache-2.0

/// For how long the leader itself runs the callbacks of one batch.
///
/// The longest of them does not count. On a busy machine it is often the one during which another program had the
/// processor, and the follower would have to wait for one as well. If it was a slow callback instead, the next slow one
/// counts.
struct LeadersShare {
    /// In nanoseconds. In this time dbus-broker writes some 30 posts, of the 160 or more that fit into the socket.
    private static let length: Int64 = 200_000

    private let start: Int64
    private var last: Int64
    private var longest: Int64 = 0

    /// - Parameter start: when the leader started to work on the batch, in nanoseconds of the monotonic clock.
    init(from start: Int64) {
        self.start = start
        last = start
    }

    /// To be asked between any two callbacks.
    mutating func isUsedUp() -> Bool {
        let now = MonotonicTime.now.nanoseconds
        longest = max(longest, now - last)
        last = now
        return now - start - longest > LeadersShare.length
    }
}

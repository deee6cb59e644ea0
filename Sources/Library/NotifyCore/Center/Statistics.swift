// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension NotifyCenter {
    /// The counters of a center since its creation. All of them only grow.
    package struct Statistics: Hashable, Sendable {
        /// Posts that were accepted, including coalesced ones.
        package let posted: Int
        /// Posts that were coalesced with an equal one still waiting to be written, because there was no connection yet or
        /// the bus did not keep up.
        package let coalescedPosts: Int
        /// Callbacks that ran, and names passed to an `AsyncSequence`.
        package let delivered: Int
        /// Deliveries that were coalesced with an equal one still waiting, because the observer did not keep up.
        package let coalescedDeliveries: Int
        /// Lost deliveries and posts: an observer's queue was full of other names, the sender of a `user.uid.` name
        /// could not be verified, a center was closed with posts waiting, or a post was still on its way when the
        /// program went into the background.
        package let lost: Int
        /// Signals that looked like posts but were rejected.
        package let rejected: Int
        /// How often the bus came back and every observer was registered again.
        package let reconnects: Int
        /// How often a running bus has closed the observing connection, as dbus-broker does when a user's programs
        /// leave too much unread. Every observed name was delivered once afterwards, as it may have been posted
        /// meanwhile; posts that match only a prefix are lost, and can't be counted.
        package let forcedDisconnects: Int
    }
}

extension Counters {
    var statistics: NotifyCenter.Statistics {
        NotifyCenter.Statistics(
            posted: posted.load(ordering: .relaxed),
            coalescedPosts: coalescedPosts.load(ordering: .relaxed),
            delivered: delivered.load(ordering: .relaxed),
            coalescedDeliveries: coalescedDeliveries.load(ordering: .relaxed),
            lost: lost.load(ordering: .relaxed),
            rejected: rejected.load(ordering: .relaxed),
            reconnects: reconnects.load(ordering: .relaxed),
            forcedDisconnects: forcedDisconnects.load(ordering: .relaxed)
        )
    }
}

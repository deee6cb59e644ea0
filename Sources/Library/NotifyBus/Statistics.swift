// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension NotifyCenter {
    /// The counters of a center since its creation. All of them only grow.
    public struct Statistics: Hashable, Sendable {
        package let core: CoreCenter.Statistics

        init(_ core: CoreCenter.Statistics) { self.core = core }

        /// Posts that were accepted, including coalesced ones.
        public var posted: Int { core.posted }
        /// Posts that were coalesced with an equal one still waiting to be written, because there was no connection yet or
        /// the bus did not keep up.
        public var coalescedPosts: Int { core.coalescedPosts }
        /// Callbacks that ran, and names passed to an `AsyncSequence`.
        public var delivered: Int { core.delivered }
        /// Deliveries that were coalesced with an equal one still waiting, because the observer did not keep up.
        public var coalescedDeliveries: Int { core.coalescedDeliveries }
        /// Lost deliveries and posts: an observer's queue was full of other names, the sender of a `user.uid.` name
        /// could not be verified, a center was closed with posts waiting, or a post was still on its way when the
        /// program went into the background.
        public var lost: Int { core.lost }
        /// Signals that looked like posts but were rejected.
        public var rejected: Int { core.rejected }
        /// How often the bus came back and every observer was registered again.
        public var reconnects: Int { core.reconnects }
        /// How often a running bus has closed the observing connection, as dbus-broker does when a user's programs
        /// leave too much unread. Every observed name was delivered once afterwards, as it may have been posted
        /// meanwhile; posts that match only a prefix are lost, and can't be counted.
        public var forcedDisconnects: Int { core.forcedDisconnects }

        /// All coalesced posts and deliveries.
        public var coalesced: Int { coalescedPosts + coalescedDeliveries }
    }
}

// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// The unique name of the connection.
    package var uniqueName: String { observing.uniqueName }

    /// Whether the connection replaces one that the same bus has cut off, so that posts may have been missed.
    package var wasCutOff: Bool { observing.wasCutOff }

    /// Whether the last connection, if any, was to another bus.
    package var isOnAnotherBus: Bool { observing.isOnAnotherBus }

    /// Empties the caches of what was read. Of little size themselves, they lie among what was freed since, and keep the
    /// allocator from returning it.
    package func emptyCaches() {
        observing.names = NameCache()
        observing.posts.removeAll()
    }
}

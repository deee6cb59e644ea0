// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The counters behind `NotifyCenter.Statistics`. Relaxed: each is exact, but they are not read at one moment.
final class Counters: Sendable {
    let posted = Atomic(0)
    let coalescedPosts = Atomic(0)
    let delivered = Atomic(0)
    let coalescedDeliveries = Atomic(0)
    let lost = Atomic(0)
    let rejected = Atomic(0)
    let reconnects = Atomic(0)
    let forcedDisconnects = Atomic(0)
}

extension Atomic where Value == Int {
    func increment(by count: Int = 1) {
        add(count, ordering: .relaxed)
    }
}

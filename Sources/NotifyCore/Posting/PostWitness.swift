// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Somebody who is told of each post of a center at once, on the thread that posts, and so need not wait for the bus to
/// bring it back.
final class PostWitness: Sendable {
    private let isThere = Atomic(false)
    private let call = Monitor<(@Sendable (NotifyName) -> Void)?>(nil)

    func set(_ witness: (@Sendable (NotifyName) -> Void)?) {
        call.withLock { $0 = witness }
        isThere.store(witness != nil, ordering: .releasing)
    }

    @inline(__always)
    func see(_ name: NotifyName) {
        guard isThere.load(ordering: .acquiring) else { return }
        call.withLock { $0 }?(name)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Somebody who is told of each post of a center at once, on the thread that posts, and so need not wait for the bus to
/// bring it back.
final class PostWitness: Sendable {
    private let isThere = Atomic(false)
    private struct Contents {
        var witness: (@Sendable (NotifyName) -> Void)?
    }

    private let contents = Monitor(Contents())

    func set(_ witness: (@Sendable (NotifyName) -> Void)?) {
        contents.withLock { $0.witness = witness }
        isThere.store(witness != nil, ordering: .releasing)
    }

    @inline(__always)
    func see(_ name: NotifyName) {
        guard isThere.load(ordering: .acquiring) else { return }
        contents.withLock { $0.witness }?(name)
    }
}

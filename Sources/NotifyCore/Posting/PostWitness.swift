// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Is notified of each post of a center immediately, on the posting thread, and so need not wait for the bus to deliver
/// it.
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

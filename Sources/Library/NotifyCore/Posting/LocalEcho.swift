// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Passes each post of a center on immediately, on the posting thread, without waiting for the bus to deliver it.
final class LocalEcho: Sendable {
    private let isThere = Atomic(false)
    private struct Contents {
        var hear: (@Sendable (NotifyName) -> Void)?
    }

    private let contents = Monitor(Contents())

    func set(_ hear: (@Sendable (NotifyName) -> Void)?) {
        contents.withLock { $0.hear = hear }
        isThere.store(hear != nil, ordering: .releasing)
    }

    @inline(__always)
    func note(_ name: NotifyName) {
        guard isThere.load(ordering: .acquiring) else { return }
        contents.withLock { $0.hear }?(name)
    }
}

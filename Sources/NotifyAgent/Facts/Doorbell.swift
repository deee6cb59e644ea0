// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Calls whoever is at home; nobody before `connect`.
final class Doorbell: Sendable {
    private let answer = Monitor<(@Sendable () -> Void)?>(nil)

    func connect(_ answer: @escaping @Sendable () -> Void) {
        self.answer.withLock { $0 = answer }
    }

    func ring() {
        answer.withLock { $0 }?()
    }
}

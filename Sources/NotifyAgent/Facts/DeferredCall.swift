// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Calls a function that is given later; until then a call does nothing.
final class DeferredCall: Sendable {
    private let function = Monitor<(@Sendable () -> Void)?>(nil)

    func set(_ function: @escaping @Sendable () -> Void) {
        self.function.withLock { $0 = function }
    }

    func callAsFunction() {
        function.withLock { $0 }?()
    }
}

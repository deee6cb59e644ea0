// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Calls a function that is supplied later; until then a call does nothing.
final class DeferredCall<Argument: Sendable>: Sendable {
    private let function = Monitor<(@Sendable (Argument) -> Void)?>(nil)

    func set(_ function: @escaping @Sendable (Argument) -> Void) {
        self.function.withLock { $0 = function }
    }

    func callAsFunction(_ argument: Argument) {
        function.withLock { $0 }?(argument)
    }
}

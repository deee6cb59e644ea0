// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import TestSupport

extension PrivateBus {
    /// A center on this bus.
    func makeCenter(waitsForBus: Bool = false) -> NotifyCenter {
        NotifyCenter(bus: .address(address), waitsForBus: waitsForBus)
    }
}

/// Suspends the task until a condition holds; returns whether it did in time. For facts that are not announced.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
    let clock = ContinuousClock()
    let deadline = clock.now + .patience
    while try await !condition() {
        guard clock.now < deadline else { return false }
        try? await Task.sleep(for: .milliseconds(5))
    }
    return true
}

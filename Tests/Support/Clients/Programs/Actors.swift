// SPDX-License-Identifier: Apache-2.0

import NotifyBus

extension NotifyName {
    static let changed: Self = "com.example.settings.changed"
}

/// An actor that keeps an observation, and one that iterates.
actor Settings {
    private var observation: NotifyCenter.Observation?
    private(set) var version = 0

    func start(_ center: NotifyCenter) async throws {
        observation = try await center.addObserver(for: .changed) { [weak self] _ in
            Task { await self?.reload() }
        }
    }

    func stop() async {
        await observation?.cancelAndWait()
        observation = nil
    }

    func follow(_ center: NotifyCenter) async throws {
        for await _ in try await center.notifications(for: .changed) { reload() }
    }

    func set(_ center: NotifyCenter) async throws {
        version += 1
        try center.post(.changed)
        try await center.flush()
        try await center.synchronize()
    }

    private func reload() { version += 1 }
}

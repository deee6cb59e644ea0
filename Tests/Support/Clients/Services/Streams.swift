// SPDX-License-Identifier: Apache-2.0

import AsyncAlgorithms
import NotifyBus

/// Builds again half a second after the last of many changes.
func rebuild(on center: NotifyCenter, _ build: @Sendable () async throws -> Void) async throws {
    try await center.withNotifications(matching: .prefix("com.example.source.")) { changes in
        for await _ in changes.debounce(for: .milliseconds(500)) { try await build() }
    }
}

/// Two centers, heard as one.
func merged(_ one: NotifyCenter, _ other: NotifyCenter, _ name: NotifyName) async throws {
    for await name in try await merge(one.notifications(for: name), other.notifications(for: name)) { print(name) }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import NotifyBus

/// What the rest of the program knows of a change: a message of Foundation.
struct SettingsChanged: NotificationCenter.AsyncMessage {
    final class Subject: Sendable {}
}

/// Passes on to the program what another has posted.
func passOn(from center: NotifyCenter, to settings: SettingsChanged.Subject) async throws {
    for await _ in try await center.notifications(for: "com.example.settings.changed") {
        NotificationCenter.default.post(SettingsChanged(), subject: settings)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import NotifyBus
import NotifyFoundation

final class Settings: Sendable {
    static let shared = Settings()
}

struct SettingsChanged: NotificationCenter.AsyncMessage, NotifyMessage {
    typealias Subject = Settings
    static let notifyName: NotifyName = "com.example.settings.changed"
    var origin = NotifyMessageOrigin.program
}

@main
struct Program {
    static func main() async throws {
        let bridge = try await NotifyMessageBridge(SettingsChanged.self, subject: .shared)
        // Observes from here on.
        var messages = NotificationCenter.default.messages(of: Settings.shared, for: SettingsChanged.self)
            .makeAsyncIterator()
        // Other programs hear the name once.
        NotificationCenter.default.post(SettingsChanged(), subject: .shared)
        while let message = try await messages.next() { print("changed by the", message.origin) }
        withExtendedLifetime(bridge) {}
    }
}

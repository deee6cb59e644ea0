// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import NotifyBus
import NotifyFoundation
import TestSupport
import Testing

/// The trait Foundation.
@Suite struct MessageTests {
    final class Settings: Sendable {}

    struct SettingsChanged: NotificationCenter.AsyncMessage, NotifyMessage {
        typealias Subject = Settings
        static let notifyName: NotifyName = "com.example.settings.changed"
        var origin = NotifyMessageOrigin.program
    }

    struct TitleChanged: NotificationCenter.MainActorMessage, NotifyMessage {
        typealias Subject = Settings
        static let notifyName: NotifyName = "com.example.title.changed"
        var origin = NotifyMessageOrigin.program
    }

    @Test(arguments: busKinds)
    func `a message is heard once here and once there, and echoes nowhere`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        // What two processes have: a center of ours and one of Foundation's each.
        let (center, other) = (bus.makeCenter(), bus.makeCenter())
        let (here, there) = (NotificationCenter(), NotificationCenter())
        let settings = Settings()
        let bridges = [
            try await NotifyMessageBridge(SettingsChanged.self, subject: settings, center: center, notifications: here),
            try await NotifyMessageBridge(SettingsChanged.self, subject: settings, center: other, notifications: there),
        ]
        let (heardHere, heardThere) = (Recorder<NotifyMessageOrigin>(), Recorder<NotifyMessageOrigin>())
        let tokens = [
            here.addObserver(of: settings, for: SettingsChanged.self) { heardHere.append($0.origin) },
            there.addObserver(of: settings, for: SettingsChanged.self) { heardThere.append($0.origin) },
        ]
        for round in 1...10 {
            here.post(SettingsChanged(), subject: settings)
            #expect(await eventually { heardHere.count == 2 * round - 1 && heardThere.count == 2 * round - 1 })
            there.post(SettingsChanged(), subject: settings)
            #expect(await eventually { heardHere.count == 2 * round && heardThere.count == 2 * round })
        }
        #expect(heardHere.elements == (0..<20).map { $0 % 2 == 0 ? .program : .bus })
        #expect(heardThere.elements == (0..<20).map { $0 % 2 == 1 ? .program : .bus })
        // An echo would have been posted by now.
        for center in [center, other] { try await center.synchronize() }
        #expect((center.statistics.posted, other.statistics.posted) == (10, 10))
        bridges.forEach { $0.cancel() }
        here.post(SettingsChanged(), subject: settings)
        #expect(await eventually { heardHere.count == 21 })
        #expect(center.statistics.posted == 10)
        withExtendedLifetime(tokens) {}
    }

    @MainActor
    @Test(arguments: busKinds)
    func `a message of the main actor is heard there, and echoes nowhere`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let (center, other) = (bus.makeCenter(), bus.makeCenter())
        let (here, there) = (NotificationCenter(), NotificationCenter())
        let settings = Settings()
        let bridges = [
            try await NotifyMessageBridge(TitleChanged.self, subject: settings, center: center, notifications: here),
            try await NotifyMessageBridge(TitleChanged.self, subject: settings, center: other, notifications: there),
        ]
        let (heardHere, heardThere) = (Counter(), Counter())
        let tokens = [
            here.addObserver(of: settings, for: TitleChanged.self) { _ in heardHere.add() },
            there.addObserver(of: settings, for: TitleChanged.self) { _ in heardThere.add() },
        ]
        for round in 1...10 {
            here.post(TitleChanged(), subject: settings)
            #expect(heardHere.value == round)
            #expect(await eventually { heardThere.value == round })
        }
        for center in [center, other] { try await center.synchronize() }
        #expect((center.statistics.posted, other.statistics.posted) == (10, 0))
        #expect((heardHere.value, heardThere.value) == (10, 10))
        withExtendedLifetime((tokens, bridges)) {}
    }
}

// SPDX-License-Identifier: Apache-2.0

import DarwinNotify
import TestSupport
import Testing

/// The types, as code for Apple's systems uses them.
@Suite struct TypeTests {
    @Test func `the center is the same each time`() throws {
        let center = try #require(CFNotificationCenterGetDarwinNotifyCenter())
        #expect(center === CFNotificationCenterGetDarwinNotifyCenter())
        #expect(center == CFNotificationCenterGetDarwinNotifyCenter())
    }

    @Test func `the suspension behaviors have Apple's numbers`() {
        let behaviors: [CFNotificationSuspensionBehavior] = [.drop, .coalesce, .hold, .deliverImmediately]
        #expect(behaviors.map(\.rawValue) == [1, 2, 3, 4])
        #expect(CFNotificationSuspensionBehavior(rawValue: 4) == .deliverImmediately)
        #expect(CFNotificationSuspensionBehavior(rawValue: 0) == nil)
    }

    @Test func `the options have Apple's numbers`() {
        #expect(kCFNotificationDeliverImmediately == 1)
        #expect(kCFNotificationPostToAllSessions == 2)
    }

    @Test func `a name is created from a string, and returns it`() {
        let text = "com.example.name"
        let name = CFNotificationName(text as CFString)
        #expect(name == CFNotificationName(rawValue: text as CFString))
        #expect(name.rawValue as String == text)
        #expect([name: 1][CFNotificationName("com.example.name" as CFString)] == 1)
    }

    @Test func `Core Foundation's types are Swift's own`() {
        #expect(CFString.self == String.self && CFDictionary.self == [AnyHashable: Any].self)
        #expect(CFIndex.self == Int.self && CFOptionFlags.self == UInt.self)
    }

    @Test func `the local center and Foundation's center have nothing to do with each other`() {
        let heard = Recorder<String>()
        let local = CFNotificationCenterGetLocalCenter()
        let observer = UnsafeRawPointer(bitPattern: 1)
        let observation = FoundationObservation(of: "com.example.type-tests") { heard.append("Foundation") }
        CFNotificationCenterAddObserver(
            local,
            observer,
            { _, _, _, _, _ in heard.append("Core Foundation") },
            "com.example.type-tests" as CFString,
            nil,
            .deliverImmediately
        )
        FoundationObservation.post("com.example.type-tests")
        #expect(heard.elements == ["Foundation"])
        let name = CFNotificationName("com.example.type-tests" as CFString)
        CFNotificationCenterPostNotification(local, name, nil, nil, true)
        #expect(heard.elements == ["Foundation", "Core Foundation"])
        CFNotificationCenterRemoveEveryObserver(local, observer)
        observation.end()
    }
}

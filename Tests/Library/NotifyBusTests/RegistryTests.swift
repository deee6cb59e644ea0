// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import Testing

@testable import NotifyCore

/// What is registered, and what the bus still has to be told.
@Suite struct RegistryTests {
    private final class SilentClient: ObserverClient {
        func wake(for observer: Observer) {}
        func end() {}
    }

    private func makeObserver() -> Observer {
        Observer(runner: .client(SilentClient()), counters: Counters(), callback: { _ in })
    }

    @Test func `rules of a name that was canceled count until they are removed`() throws {
        let registry = Registry()
        let (first, second) = (makeObserver(), makeObserver())
        let kept = try registry.add(first, to: [.name("com.example.kept")])
        let canceled = try registry.add(second, to: [.name("com.example.canceled")])
        #expect(registry.takeCommands().count == 2)
        #expect(registry.remove(second, from: canceled))
        #expect(registry.allTopics.map(ObjectIdentifier.init) == kept.map(ObjectIdentifier.init))
        #expect(
            Set(registry.topicsWithRules.map(ObjectIdentifier.init))
                == Set((kept + canceled).map(ObjectIdentifier.init))
        )
        #expect(registry.takeCommands().count == 1)
        #expect(registry.topicsWithRules.map(ObjectIdentifier.init) == kept.map(ObjectIdentifier.init))
    }
}

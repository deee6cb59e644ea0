// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
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

    /// Remembers what it is to deliver.
    private final class RecordingThread: CallbackThread {
        let offered = Recorder<NotifyName>()
        func offer(_ name: NotifyName, to observer: Observer) { offered.append(name) }
        func enqueue(_ call: @escaping @Sendable () -> Void) { call() }
        func enqueueLast(_ call: @escaping @Sendable () -> Void) { call() }
    }

    @Test func `a name that comes while the callback of a prompt observer runs is called back later`() {
        let thread = RecordingThread()
        let (hasBegun, mayEnd) = (Recorder<Bool>(), Recorder<Bool>())
        let observer = Observer(
            runner: .prompt(thread, isShort: { true }),
            counters: Counters(),
            callback: { _ in
                hasBegun.append(true)
                _ = mayEnd.wait(forCount: 1, timeout: .patience)
            }
        )
        startThread { observer.call("com.example.a") }
        #expect(hasBegun.wait(forCount: 1, timeout: .patience))
        observer.call("com.example.b")
        #expect(thread.offered.elements == ["com.example.b"])
        observer.cancel()
        observer.call("com.example.c")
        #expect(thread.offered.elements == ["com.example.b"])
        mayEnd.append(true)
        #expect(observer.waitUntilIdle() == .idle)
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

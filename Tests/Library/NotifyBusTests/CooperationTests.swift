// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyBus
import NotifyCore
import TestSupport
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter

/// A pool of one thread, like Swift's cooperative pool on a machine with one core.
private final class OneThread: TaskExecutor {
    private let queue = DispatchQueue(label: "org.notifybus.test.one-thread")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// What a callback waits for.
private final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func open() { semaphore.signal() }

    func wait() {
        semaphore.wait()
        semaphore.signal()
    }
}

/// Asynchronous calls that must not block the pool.
@Suite struct CooperationTests {
    private static let calls: [(String, @Sendable (NotifyCenter) async throws -> Void)] = [
        ("post", { try $0.post("com.example.x") }),
        ("connect", { try await $0.connect() }),
        ("synchronize", { try await $0.synchronize() }),
        ("an observer of a name", { _ = try await $0.addObserver(for: "com.example.x") { _ in } }),
        ("an observer of names", { _ = try await $0.addObserver(matching: .names(["com.example.x"])) { _ in } }),
        ("an observer of prefixes", { _ = try await $0.addObserver(matching: .prefix("com.example.")) { _ in } }),
        ("an observer on a queue", { _ = try await $0.addObserver(for: "com.example.x", queue: .main) { _ in } }),
        ("a sequence", { _ = try await $0.notifications(for: "com.example.x") }),
        ("a sequence of prefixes", { _ = try await $0.notifications(matching: .prefix("com.example.")) }),
        ("a report of the state", { try await $0.lifecycle.report(.foreground) }),
        ("changes of the state", { _ = try $0.lifecycle.changes() }),
    ]

    @Test(arguments: busKinds)
    func `while a bus does not answer, no call blocks the only thread`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        var waiting: [Task<Void, Never>] = []
        for (what, call) in CooperationTests.calls {
            let center = bus.makeCenter()
            waiting.append(check(what) { _ = try? await call(center) })
        }
        bus.resume()
        for task in waiting { await task.value }
    }

    /// Calls that wait for something other than the connection, and what makes them wait.
    private static let later: [(String, @Sendable (NotifyCenter) async -> Void)] = [
        ("flush", { try? await $0.flush() }),
        ("synchronize", { try? await $0.synchronize() }),
        ("close", { await $0.close() }),
    ]

    @Test(arguments: busKinds)
    func `while a bus does not read, no call blocks the only thread`(
        kind: BusKind
    ) async throws {
        for (what, call) in CooperationTests.later {
            let bus = try PrivateBus(kind)
            let center = bus.makeCenter()
            let mayEnd = Gate()
            let began = Counter()
            let observation = try await center.addObserver(for: "com.example.busy") { _ in
                began.add()
                mayEnd.wait()
            }
            try center.postOnceConnected("com.example.busy")
            // What close() waits for.
            try #require(began.wait(for: 1))
            bus.stop()
            // What flush() waits for.
            while center.waitingPosts == 0 { try center.postOnceConnected("com.example.flood") }
            let ended = check(what) { await call(center) }
            bus.resume()
            mayEnd.open()
            await ended.value
            observation.cancel()
        }
    }

    @Test(arguments: busKinds)
    func `cancelAndWait does not block the only thread while the callback runs, and returns after it`(kind: BusKind)
        async throws
    {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let mayEnd = Gate()
        let (began, ended) = (Counter(), Counter())
        let observation = try await center.addObserver(for: "com.example.busy", queue: .global(qos: .utility)) {
            _ in
            began.add()
            mayEnd.wait()
            ended.add()
        }
        try center.postOnceConnected("com.example.busy")
        try #require(began.wait(for: 1))
        let cancelled = check("cancelAndWait") {
            await observation.cancelAndWait()
            #expect(ended.value == 1)
        }
        mayEnd.open()
        await cancelled.value
    }

    /// Makes a call on the only thread of a pool, and checks that another task runs while the call waits.
    private func check(_ what: String, _ call: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        let pool = OneThread()
        let (began, others) = (Counter(), Counter())
        let task = Task(executorPreference: pool) {
            began.add()
            await call()
        }
        Task(executorPreference: pool) { others.add() }
        #expect(others.wait(for: 1), "\(what)")
        #expect(began.value == 1, "\(what)")
        return task
    }

    @Test(arguments: busKinds)
    func `a sequence of states begins with the present one`(kind: BusKind) async throws {
        let center = try PrivateBus(kind).makeCenter()
        var states = try center.lifecycle.changes().makeAsyncIterator()
        #expect(await states.next(isolation: nil) == .foreground)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyBus
import TestSupport
import Testing

/// A pool of one thread, as Swift's cooperative pool is on a machine with one core.
private final class OneThread: TaskExecutor {
    private let queue = DispatchQueue(label: "org.notifybus.test.one-thread")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// What asynchronous code may call without making others wait.
@Suite(.timeLimit(.minutes(2))) struct CooperationTests {
    private static let calls: [(String, @Sendable (NotifyCenter) async throws -> Void)] = [
        ("post", { try await $0.post("com.example.x") }),
        ("synchronize", { try await $0.synchronize() }),
        ("an observer of a name", { _ = try await $0.addObserver(forName: "com.example.x") { _ in } }),
        ("an observer of names", { _ = try await $0.addObserver(forNames: ["com.example.x"]) { _ in } }),
        ("an observer of prefixes", { _ = try await $0.addObserver(forPrefixes: ["com.example."]) { _ in } }),
        ("an observer on a queue", { _ = try await $0.addObserver(forName: "com.example.x", queue: .main) { _ in } }),
        ("a sequence", { _ = try await $0.notifications(named: "com.example.x") }),
        ("a sequence of prefixes", { _ = try await $0.notifications(withPrefixes: ["com.example."]) }),
        ("a report of the state", { try await $0.lifecycle.report(.foreground) }),
        ("changes of the state", { _ = try $0.lifecycle.changes() }),
    ]

    @Test(arguments: busKinds)
    func `while a bus does not answer, no call keeps the only thread from other tasks`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        let pool = OneThread()
        var waiting: [Task<Void, Never>] = []
        for (what, call) in CooperationTests.calls {
            let center = bus.makeCenter()
            let began = Counter()
            waiting.append(
                Task(executorPreference: pool) {
                    began.add()
                    _ = try? await call(center)
                }
            )
            let others = Counter()
            Task(executorPreference: pool) { others.add() }
            #expect(others.wait(for: 1), "\(what)")
            #expect(began.value == 1, "\(what)")
        }
        bus.resume()
        for task in waiting { await task.value }
    }

    @Test(arguments: busKinds)
    func `a sequence of states begins with the present one`(kind: BusKind) async throws {
        let center = try PrivateBus(kind).makeCenter()
        var states = try center.lifecycle.changes().makeAsyncIterator()
        #expect(await states.next() == .foreground)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import NotifyBus
import NotifyCore
import TestSupport
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter
private typealias NotifyName = NotifyBus.NotifyName
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// Asynchronous calls while a bus delays its answer: they end when their task is cancelled, and need no thread.
@Suite struct SuspendedCallTests {
    private static let calls: [(String, @Sendable (NotifyCenter) async throws -> Void)] = [
        ("connect", { try await $0.connect() }),
        ("synchronize", { try await $0.synchronize() }),
        ("an observer", { _ = try await $0.addObserver(for: "com.example.x") { _ in } }),
        ("an observer on a queue", { _ = try await $0.addObserver(for: "com.example.x", queue: .main) { _ in } }),
        (
            "an observer on the main actor",
            { _ = try await $0.addObserver(for: "com.example.x", on: MainActor.shared) { _ in } }
        ),
        ("a sequence", { _ = try await $0.notifications(for: "com.example.x") }),
        ("the next one", { _ = try await $0.next(of: "com.example.x") }),
        ("the next one of an action", { _ = try await $0.next(of: "com.example.x") { exit(1) } }),
        ("a report of the state", { try await $0.lifecycle.report(.foreground) }),
        ("following the desktop", { try await $0.lifecycle.setFollowsDesktop(true) }),
    ]

    @Test(arguments: busKinds)
    func `a call whose task is cancelled ends at once, whatever the bus does`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let used = bus.makeCenter()
        let observation = try await used.addObserver(for: "com.example.first") { _ in }
        try used.postOnceConnected("com.example.first")
        bus.stop()
        defer { bus.resume() }
        for (what, call) in SuspendedCallTests.calls {
            // One that has yet to connect, and one that is connected: that is, and knows that there is no agent.
            let hasAnswer = ["connect", "a report of the state", "following the desktop"].contains(what)
            for center in [bus.makeCenter()] + (hasAnswer ? [] : [used]) {
                let began = Counter()
                let task = Task {
                    began.add()
                    try await call(center)
                }
                try #require(began.wait(for: 1))
                task.cancel()
                let error = await #expect(throws: NotifyBusError.self, "\(what)") { try await task.value }
                #expect(error?.code == .cancelled, "\(what)")
            }
        }
        withExtendedLifetime(observation) {}
    }

    @Test(arguments: busKinds)
    func `a flush whose task is cancelled ends at once, and the posts are written later`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        try center.postOnceConnected("com.example.flood")
        bus.stop()
        while center.waitingPosts == 0 { try center.postOnceConnected("com.example.flood") }
        let task = Task { try await center.flush() }
        task.cancel()
        let error = await #expect(throws: NotifyBusError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        bus.resume()
        try await center.flush()
        #expect(center.waitingPosts == 0)
    }

    private final class Witness: Sendable {}

    @Test(arguments: busKinds)
    func `a registration that was cancelled leaves nothing behind`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = Recorder<String>()
        let observation = try await center.addObserver(for: "com.example.last") { heard.append($0.string) }
        bus.stop()
        weak var witness: Witness?
        do {
            let kept = Witness()
            witness = kept
            let task = Task { [kept] in
                try await center.addObserver(for: "com.example.cancelled") { name in
                    withExtendedLifetime(kept) { heard.append(name.string) }
                }
            }
            task.cancel()
            let error = await #expect(throws: NotifyBusError.self) { try await task.value }
            #expect(error?.code == .cancelled)
        }
        bus.resume()
        for name: NotifyName in ["com.example.cancelled", "com.example.last"] { try center.postOnceConnected(name) }
        try #require(heard.wait(forCount: 1, timeout: .patience))
        #expect(heard.elements == ["com.example.last"])
        // The callback was released.
        #expect(waitUntil { witness == nil })
        observation.cancel()
    }

    /// How many registrations are under way at once.
    private static let count = 10_000

    @Test(.serialized, arguments: busKinds)
    func `ten thousand registrations under way at once need no thread, and each becomes live or is cancelled`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        try handOver("\(bus.processID) \(bus.address)", to: "ten-thousand")
        await #expect(processExitsWith: .success) {
            let words = try handedOver(to: "ten-thousand").split(separator: " ", maxSplits: 1)
            guard let process = pid_t(words[0]) else { exit(1) }
            let address = String(words[1])
            let center = NotifyCenter(bus: .address(address))
            let first = try await center.addObserver(for: "com.example.first") { _ in }
            // A busy bus may take longer to accept another connection than a post waits.
            try center.postOnceConnected("com.example.first")
            let heard = Counter()
            // Swift's own threads are there before they are counted.
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<100 { group.addTask { await Task.yield() } }
            }
            let threads = threadCount(of: getpid())
            for isCancelled in [true, false] {
                kill(process, SIGSTOP)
                let started = Counter()
                let tasks = try (0..<SuspendedCallTests.count).map { number in
                    let name = try NotifyName("com.example.many.\(number)")
                    return Task {
                        started.add()
                        return try await center.addObserver(for: name) { _ in heard.add() }
                    }
                }
                guard waitUntil({ started.value == SuspendedCallTests.count }) else { exit(2) }
                guard threadCount(of: getpid()) <= threads else { exit(3) }
                if isCancelled {
                    for task in tasks { task.cancel() }
                    for task in tasks {
                        guard case .failure(let error as NotifyBusError) = await task.result, error.code == .cancelled
                        else { exit(4) }
                    }
                    kill(process, SIGCONT)
                    try center.postOnceConnected("com.example.many.1")
                    try await center.synchronize()
                    try center.barrier(timeout: .patience)
                    guard heard.value == 0 else { exit(5) }
                } else {
                    kill(process, SIGCONT)
                    var observations: [NotifyCenter.Observation] = []
                    for task in tasks { observations.append(try await task.value) }
                    guard threadCount(of: getpid()) <= threads else { exit(6) }
                    for number in stride(from: 0, to: SuspendedCallTests.count, by: 100) {
                        try center.postOnceConnected(NotifyName("com.example.many.\(number)"))
                    }
                    guard heard.wait(for: SuspendedCallTests.count / 100, timeout: .patience) else { exit(7) }
                }
            }
            withExtendedLifetime(first) {}
            exit(0)
        }
    }
}

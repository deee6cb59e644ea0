// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import NotifyBus
import TestSupport
import Testing

/// Sequences and queues.
@Suite struct AsynchronousTests {
    @Test(arguments: busKinds)
    func `a sequence has every post since its creation, in order`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let names = try (0..<3).map { try NotifyName("com.example.sequence.\($0)") }
        let notifications = try await center.notifications(matching: .names(names))
        for number in 0..<1_000 { try center.postOnceConnected(names[number % 3]) }
        var heard: [NotifyName] = []
        for await name in notifications {
            heard.append(name)
            if heard.count == 1_000 { break }
        }
        #expect(heard == (0..<1_000).map { names[$0 % 3] })
        #expect(center.statistics.delivered == 1_000)
    }

    @Test(arguments: busKinds)
    func `a sequence ends when it or its task is cancelled, and when its center closes`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let notifications = try await center.notifications(matching: .prefix("com.example."))
        let ended = Counter()
        let (heard, hears) = AsyncStream.makeStream(of: NotifyName.self)
        let task = Task {
            for await name in notifications { hears.yield(name) }
            ended.add()
        }
        try center.postOnceConnected("com.example.x")
        for await _ in heard { break }
        task.cancel()
        await task.value
        #expect(ended.value == 1)

        let second = try await center.notifications(for: "com.example.y")
        second.cancel()
        var iterator = second.makeAsyncIterator()
        #expect(await iterator.next() == nil)

        let third = try await center.notifications(for: "com.example.z")
        let waiting = Task {
            var iterator = third.makeAsyncIterator()
            return await iterator.next()
        }
        await center.close()
        #expect(await waiting.value == nil)
    }

    @Test(arguments: busKinds)
    func `a sequence that is not iterated stays bounded, and has the last post of each name`(kind: BusKind) async throws
    {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let names = try (0..<10).map { try NotifyName("com.example.unread.\($0)") }
        let notifications = try await center.notifications(matching: .prefix("com.example.unread."))
        for number in 0..<20_000 {
            try center.postOnceConnected(names[number % 10])
            if number % 1_000 == 0 { try await center.synchronize() }
        }
        try await center.synchronize()
        try center.barrier(timeout: .patience)
        #expect(center.statistics.coalescedDeliveries == 20_000 - 4_096)
        notifications.cancel()
    }

    @Test(arguments: busKinds)
    func `callbacks on a queue run there, in order and one at a time`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let key = DispatchSpecificKey<String>()
        for attributes in [DispatchQueue.Attributes(), .concurrent] {
            // Other tests block the threads of the default quality of service, and two processors have few.
            let queue = DispatchQueue(label: "org.notifybus.test", qos: .utility, attributes: attributes)
            queue.setSpecific(key: key, value: "here")
            let heard = Recorder<String>()
            let strays = Counter()
            let observation = try center.addObserver(
                matching: .prefix("com.example."),
                queue: queue,
                timeout: .seconds(25)
            ) { name in
                if DispatchQueue.getSpecific(key: key) != "here" { strays.add() }
                heard.append(name.string)
            }
            let names = (0..<2_000).map { "com.example.queue.\($0)" }
            for name in names { try center.postOnceConnected(NotifyName(name)) }
            #expect(heard.wait(forCount: 2_000, timeout: .patience))
            let isInOrder = heard.elements == names
            #expect(isInOrder)
            #expect(strays.value == 0)
            observation.cancel()
            try center.postOnceConnected("com.example.queue.late")
            try center.synchronize(timeout: .patience)
            try center.barrier(timeout: .patience)
            queue.sync(flags: .barrier) {}
            #expect(heard.count == 2_000)
        }
    }

    @Test(arguments: busKinds)
    func `callbacks on the main actor run there, in order, and not after cancel`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let view = View()
        let names = try (0..<1_000).map { try NotifyName("com.example.main.\($0)") }
        let observation = try await view.observe(center)
        for name in names { try center.postOnceConnected(name) }
        try #require(view.counter.wait(for: 1_000, timeout: .patience))
        #expect(await view.heard == names)
        observation.cancel()
        try center.postOnceConnected("com.example.main.late")
        try await center.synchronize()
        try center.barrier(timeout: .patience)
        #expect(await view.heard.count == 1_000)
    }

    @Test func `what is cancelled before it is live ends quietly, and its closure does not run`() async throws {
        let bus = try HangingBus()
        let center = NotifyCenter(bus: .address(bus.address))
        let runs = Counter()
        // Before it has begun, and at some point while it waits.
        for pause: UInt32 in [0, 1_000, 20_000] {
            let task = Task {
                try await center.withNotifications(for: "com.example.a") { _ in runs.add() }
            }
            usleep(pause)
            task.cancel()
            try await task.value
        }
        #expect(runs.value == 0)
    }

    @MainActor private final class View {
        nonisolated let counter = Counter()
        var heard: [NotifyName] = []

        func observe(_ center: NotifyCenter) async throws -> NotifyCenter.Observation {
            try await center.addObserver(matching: .prefix("com.example.main."), on: MainActor.shared) {
                [weak self] name in
                self?.heard.append(name)
                self?.counter.add()
            }
        }
    }

    @Test(.serialized, arguments: busKinds)
    func `two tasks that wait for the next notification of one sequence end the program with a sentence`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        try handOver(bus.address, to: "two-tasks")
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let address = try handedOver(to: "two-tasks")
            let sequence = try await NotifyCenter(bus: .address(address)).notifications(for: "com.example.x")
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<2 {
                    group.addTask {
                        for await _ in sequence {}
                    }
                }
            }
        }
        let text = try String(decoding: #require(result).standardErrorContent, as: UTF8.self)
        #expect(text.contains("Two tasks wait for the next notification of one sequence"))
    }

    @Test(arguments: busKinds)
    func `a task goes on where another has stopped`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let notifications = try await center.notifications(for: "com.example.x")
        let waiting = Task { for await _ in notifications {} }
        waiting.cancel()
        await waiting.value
        try center.postOnceConnected("com.example.x")
        for await name in notifications {
            #expect(name == "com.example.x")
            break
        }
    }

    @Test(arguments: busKinds)
    func `the changes of the connection are a sequence, which ends with the center`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let changes = center.connectionChanges()
        #expect(!center.isConnected)
        let observation = try await center.addObserver(for: "com.example.x") { _ in }
        #expect(center.isConnected)
        var kinds: [NotifyCenter.ConnectionChange.Kind] = []
        for await change in changes {
            kinds.append(change.kind)
            #expect((change.error == nil) == (change.kind == .connected))
            if kinds.count == 1 { try bus.restart() }
            if kinds.count == 3 { break }
        }
        #expect(kinds == [.connected, .disconnected, .connected])
        // It begins with the present.
        for await change in center.connectionChanges() {
            #expect(change == .connected && "\(change)" == "connected")
            break
        }
        #expect(center.isConnected)
        let rest = Task { for await _ in center.connectionChanges() {} }
        await center.close()
        await rest.value
        for await _ in center.connectionChanges() {}
        withExtendedLifetime(observation) {}
    }
}

// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyBus
import NotifyCore
import TestSupport
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter
private typealias NotifyName = NotifyBus.NotifyName
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// A bus inside the process, for tests of programs.
@Suite struct InProcessTests {
    private let bus = NotifyCenter.Bus.inProcess()

    @Test func `centers with the same value meet, in order, in every form, and no others`() async throws {
        let centers = (0..<3).map { _ in NotifyCenter(bus: bus) }
        let stranger = NotifyCenter(bus: .inProcess())
        let (heard, onQueue, strange) = (Recorder<NotifyName>(), Recorder<NotifyName>(), Counter())
        let names = try (0..<100).map { try NotifyName("com.example.n\($0 % 10)") }
        var kept = [
            try await centers[0].addObserver(matching: .prefix("com.example.")) { heard.append($0) },
            try await centers[1].addObserver(matching: .everything, queue: .global(qos: .utility)) {
                onQueue.append($0)
            },
            try await centers[1].addObserver(matching: .everything, ignoringOwnPosts: true) { _ in strange.add() },
            try await stranger.addObserver(matching: .everything) { _ in strange.add() },
        ]
        let sequence = try await centers[2].notifications(for: names[0], names[1])
        for name in names { try centers[1].post(name) }
        try await centers[1].flush()
        try await centers[1].synchronize()
        for center in centers { try center.barrier(timeout: .patience) }
        #expect(heard.elements == names)
        #expect(onQueue.wait(forCount: 100, timeout: .patience))
        #expect(onQueue.elements == names)
        var iterator = sequence.makeAsyncIterator()
        #expect(await iterator.next() == names[0])
        #expect(await iterator.next() == names[1])
        try stranger.barrier(timeout: .patience)
        #expect(strange.value == 0)
        #expect(centers[1].statistics.posted == 100 && centers[1].waitingPosts == 0)
        kept[0].cancel()
        try centers[1].post(names[0])
        try centers[0].barrier(timeout: .patience)
        #expect(heard.count == 100)
        kept.removeAll()
    }

    @Test func `an answer is waited for as on any bus`() async throws {
        let (server, client) = (NotifyCenter(bus: bus), NotifyCenter(bus: bus))
        let observation = try await server.addObserver(for: "com.example.ping") { [weak server] _ in
            try? server?.post("com.example.pong")
        }
        let answer = try await client.next(of: "com.example.pong", timeout: .patience) {
            try client.post("com.example.ping")
        }
        #expect(answer == "com.example.pong")
        observation.cancel()
    }

    @Test func `while it is away posts wait, and what asks for it is an error`() async throws {
        let (center, other) = (NotifyCenter(bus: bus), NotifyCenter(bus: bus))
        let heard = Recorder<NotifyName>()
        let observation = try await center.addObserver(matching: .everything) { heard.append($0) }
        var changes = center.connectionChanges().makeAsyncIterator()
        #expect(await changes.next(isolation: nil) == .connected)
        #expect(center.isConnected)
        bus.disconnect()
        #expect(await changes.next(isolation: nil)?.kind == .disconnected)
        #expect(!center.isConnected && !other.isConnected)
        for name: NotifyName in ["com.example.a", "com.example.b"] { try other.post(name) }
        #expect(other.waitingPosts == 2)
        for ask in [
            { try await other.connect() }, { try await other.flush() }, { try await other.synchronize() },
            { _ = try await other.addObserver(for: "com.example.a") { _ in } },
        ] as [() async throws -> Void] {
            let error = await #expect(throws: NotifyBusError.self) { try await ask() }
            #expect(error?.code == .disconnected)
        }
        let waiting = NotifyCenter(bus: bus, waitsForBus: true)
        let later = Recorder<NotifyName>()
        let kept = try await waiting.addObserver(for: "com.example.b") { later.append($0) }
        bus.reconnect()
        #expect(await changes.next(isolation: nil) == .connected)
        try await other.flush()
        try center.barrier(timeout: .patience)
        #expect(heard.elements == ["com.example.a", "com.example.b"])
        try waiting.barrier(timeout: .patience)
        #expect(later.elements == ["com.example.b"])
        #expect(center.statistics.reconnects == 1 && other.waitingPosts == 0)
        withExtendedLifetime((observation, kept)) {}
    }

    @Test func `a center that is closed is out of it, and what waited is lost`() async throws {
        let (center, other) = (NotifyCenter(bus: bus), NotifyCenter(bus: bus))
        let heard = Counter()
        let observation = try await center.addObserver(for: "com.example.a") { _ in heard.add() }
        bus.disconnect()
        try other.post("com.example.a")
        await other.close()
        #expect(other.statistics.lost == 1)
        bus.reconnect()
        for call in [{ try other.post("com.example.a") }, { try await other.connect() }, { try await other.flush() }]
            as [() async throws -> Void]
        {
            let error = await #expect(throws: NotifyBusError.self) { try await call() }
            #expect(error?.code == .closed)
        }
        try center.barrier(timeout: .patience)
        #expect(heard.value == 0)
        observation.cancel()
    }

    @Test func `names that stay in the process stay on it, and need it not`() async throws {
        let (center, other, stranger) = (
            NotifyCenter(bus: bus), NotifyCenter(bus: bus), NotifyCenter(bus: .inProcess())
        )
        let (heard, strange) = (Recorder<NotifyName>(), Counter())
        let prefix = try await center.addObserver(matching: .prefix("self.")) { heard.append($0) }
        let foreign = try await stranger.addObserver(for: "self.in-process") { _ in strange.add() }
        bus.disconnect()
        let name = try await center.addObserver(for: "self.in-process") { heard.append($0) }
        try other.post("self.in-process")
        #expect(heard.wait(forCount: 2))
        #expect(heard.elements == ["self.in-process", "self.in-process"])
        try stranger.post("self.in-process")
        try stranger.barrier(timeout: .patience)
        #expect(strange.value == 1 && heard.count == 2)
        withExtendedLifetime((prefix, foreign, name)) {}
    }

    @Test func `there is no agent on it`() async throws {
        let center = NotifyCenter(bus: bus)
        var states = try center.lifecycle.changes().makeAsyncIterator()
        #expect(await states.next(isolation: nil) == .foreground)
        try await center.lifecycle.setFollowsDesktop(true)
        #expect(center.lifecycle.followsDesktop && center.visibility == .everyone)
        let error = await #expect(throws: NotifyBusError.self) { try await center.lifecycle.report(.background) }
        #expect(error?.code == .noAgent)
        #expect(throws: NotifyBusError.self) { try bus.resolveAddress() }
    }
}

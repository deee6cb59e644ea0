// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyBus
import NotifyCore
import TestSupport
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter
private typealias NotifyName = NotifyBus.NotifyName
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// Registrations that wait for a bus that isn't available yet.
@Suite struct WaitingForBusTests {
    @Test(arguments: busKinds)
    func `a waiting registration is live once the bus is available`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.kill()
        let center = bus.makeCenter()
        let outcomes = Recorder<Bool>()
        let heard = Counter()
        let observation = try center.startObserving(
            .names(["com.example.a", "com.example.b"]),
            waitsForBus: true,
            using: { _ in heard.add() },
            whenLive: { outcomes.append((try? $0.get()) != nil) }
        )
        // A center that doesn't wait gets an error.
        let error = #expect(throws: NotifyBusError.self) {
            try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { _ in }
        }
        #expect(error?.code == .noBus || error?.code == .disconnected)
        #expect(outcomes.count == 0)
        try bus.restart()
        try #require(outcomes.wait(forCount: 1, timeout: .patience))
        #expect(outcomes.elements == [true])
        for name in ["com.example.a", "com.example.b"] { try bus.makeCenter().postOnceConnected(NotifyName(name)) }
        #expect(heard.wait(for: 2))
        // Nothing was missed before it was live.
        #expect(heard.value == 2)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `a center that waits for the bus observes once it is available, in every form, and reports that`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        bus.kill()
        let changes = Recorder<String>()
        let center = NotifyCenter(bus: .address(bus.address), waitsForBus: true) { change in
            changes.append("\(change.error?.code.description ?? "reconnected")")
        }
        let heard = Counter()
        let observation = try await center.addObserver(for: "com.example.a") { _ in heard.add() }
        let onQueue = try await center.addObserver(matching: .prefix("com.example."), queue: .global(qos: .utility)) {
            _ in
            heard.add()
        }
        let names = try await center.notifications(matching: .names(["com.example.a", "com.example.b"]))
        try #require(changes.wait(forCount: 1))
        #expect(changes.elements == ["noBus"])
        try bus.restart()
        try #require(changes.wait(forCount: 2, timeout: .patience))
        #expect(changes.elements == ["noBus", "reconnected"])
        #expect(center.statistics.reconnects == 0, "it was not lost")
        // Every registration is live once that has been reported.
        try bus.makeCenter().postOnceConnected("com.example.a")
        #expect(heard.wait(for: 2))
        var iterator = names.makeAsyncIterator()
        #expect(await iterator.next() == "com.example.a")
        // From then on it is a center like any other.
        try bus.restart()
        try #require(changes.wait(forCount: 4, timeout: .patience))
        #expect(changes.elements.last == "reconnected")
        try bus.makeCenter().postOnceConnected("com.example.a")
        #expect(heard.wait(for: 4))
        observation.cancel()
        onQueue.cancel()
    }

    @Test(arguments: busKinds)
    func `it is live at once if there is a bus, and survives its loss`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let (lives, heard) = (Counter(), Counter())
        func observe(_ name: String) throws -> NotifyCenter.Observation {
            try center.startObserving(
                .name(NotifyName(name)),
                waitsForBus: true,
                using: { _ in heard.add() },
                whenLive: { if (try? $0.get()) != nil { lives.add() } }
            )
        }
        let first = try observe("com.example.a")
        try #require(lives.wait(for: 1))
        bus.kill()
        try #require(waitUntil { (try? center.barrier(timeout: .seconds(1))) == nil })
        let second = try observe("com.example.b")
        try bus.restart()
        try #require(lives.wait(for: 2, timeout: .patience))
        try #require(waitUntil { center.statistics.reconnects == 1 })
        for name in ["com.example.a", "com.example.b"] { try bus.makeCenter().postOnceConnected(NotifyName(name)) }
        #expect(heard.wait(for: 2))
        first.cancel()
        second.cancel()
    }

    @Test func `a center that does not wait reports once that there is no bus`() throws {
        let center = NotifyCenter(bus: .address("unix:path=/nonexistent/bus"))
        let outcomes = Recorder<NotifyBusError.Code?>()
        let observation = try center.startObserving(
            .name("com.example.a"),
            waitsForBus: false,
            using: { _ in },
            whenLive: { result in
                if case .failure(let error) = result { outcomes.append(error.code) } else { outcomes.append(nil) }
            }
        )
        try #require(outcomes.wait(forCount: 1))
        #expect(outcomes.elements == [.noBus])
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `an observation that was cancelled before is not notified`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.kill()
        let center = bus.makeCenter()
        let told = Counter()
        func observe(_ name: String) throws -> NotifyCenter.Observation {
            try center.startObserving(
                .name(NotifyName(name)),
                waitsForBus: true,
                using: { _ in },
                whenLive: { _ in told.add() }
            )
        }
        let cancelled = try observe("com.example.a")
        cancelled.cancel()
        let kept = try observe("com.example.b")
        try bus.restart()
        try #require(told.wait(for: 1, timeout: .patience))
        try center.barrier(timeout: .patience)
        #expect(told.value == 1)
        kept.cancel()
    }
}

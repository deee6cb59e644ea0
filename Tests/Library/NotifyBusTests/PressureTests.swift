// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import NotifyBus
import TestSupport
import Testing

/// What happens when something doesn't keep up. Tests that read the memory of a process run in their own, because other
/// tests need memory as well.
@Suite(.serialized) struct PressureTests {
    @Test(.serialized, arguments: busKinds)
    func `a million posts to a bus that does not read return at once and lose no name`(kind: BusKind) async throws {
        try handOver(kind.rawValue, to: "stopped-bus")
        await #expect(processExitsWith: .success) {
            let kind = try BusKind.handedOver(to: "stopped-bus")
            try PressureTests.floodStoppedBus(kind)
        }
    }

    private static func floodStoppedBus(_ kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let (center, observing) = (bus.makeCenter(), bus.makeCenter())
        let names = try (0..<100).map { try NotifyName("com.example.storm.\($0)") }
        let last = Recorder<NotifyName>()
        let total = Counter()
        let observation = try observing.addObserver(matching: .names(names), timeout: .seconds(25)) {
            last.append($0)
            total.add()
        }
        try center.postOnceConnected(names[0])
        try #require(total.wait(for: 1))

        bus.stop()
        let before = residentBytes(of: getpid())
        for number in 0..<1_000_000 { try center.postOnceConnected(names[number % 100]) }
        let growth = residentBytes(of: getpid()) - before
        #expect(growth < 16 << 20, "the poster grew by \(growth) bytes")
        let statistics = center.statistics
        #expect(statistics.posted == 1_000_001)
        #expect(statistics.coalescedPosts > 990_000)
        #expect(center.waitingPosts <= 4_096 + 100)

        let heardBefore = total.value
        bus.resume()
        try center.flush(timeout: .patience)
        try center.synchronize(timeout: .patience)
        try observing.barrier(timeout: .patience)
        // Every name is heard after the bus reads again, including the last post of each.
        let late = last.elements.dropFirst(heardBefore)
        let missing = Set(names).subtracting(late)
        #expect(missing.isEmpty)
        #expect(center.waitingPosts == 0)
        #expect(last.count == 1_000_001 - statistics.coalescedPosts - observing.statistics.coalescedDeliveries)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `of 70,000 names the last are refused with a clear error, and no others are lost`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let (center, observing) = (bus.makeCenter(), bus.makeCenter())
        let heard = Recorder<NotifyName>()
        let observation = try observing.addObserver(matching: .prefix("com.example."), timeout: .seconds(25)) {
            heard.append($0)
        }
        try center.postOnceConnected("com.example.first")
        try #require(heard.wait(forCount: 1, timeout: .patience))

        bus.stop()
        var accepted: [NotifyName] = []
        var refusals: [NotifyBusError] = []
        for number in 0..<70_000 {
            let name = try NotifyName("com.example.n\(number)")
            do throws(NotifyBusError) {
                try center.postOnceConnected(name)
                accepted.append(name)
            } catch {
                refusals.append(error)
            }
        }
        #expect(accepted.count >= 65_536)
        #expect(!refusals.isEmpty && refusals.count <= 70_000 - 65_536)
        #expect(refusals.allSatisfy { $0.code == .queueFull })
        #expect(refusals.first?.description.contains("was rejected: 65536 names are already queued") == true)
        #expect(center.waitingPosts <= 65_536 + 200)

        bus.resume()
        try center.synchronize(timeout: .patience)
        try observing.barrier(timeout: .patience)
        let isComplete = heard.elements.dropFirst().elementsEqual(accepted)
        #expect(isComplete)
        #expect(observing.statistics.lost == 0)
        observation.cancel()
    }

    @Test(.serialized, arguments: busKinds)
    func `a slow observer grows neither its process nor the bus, and gets the last post of each name`(
        kind: BusKind
    ) async throws {
        try handOver(kind.rawValue, to: "slow-observer")
        await #expect(processExitsWith: .success) {
            let kind = try BusKind.handedOver(to: "slow-observer")
            try PressureTests.floodSlowObserver(kind)
        }
    }

    private static func floodSlowObserver(_ kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let (observing, poster) = (bus.makeCenter(), bus.makeCenter())
        let names = try (0..<50).map { try NotifyName("com.example.slow.\($0)") }
        let (entered, mayGoOn) = (Counter(), Counter())
        let heard = Recorder<NotifyName>()
        let observation = try observing.addObserver(matching: .names(names), timeout: .seconds(25)) { name in
            entered.add()
            _ = mayGoOn.wait(for: 1, timeout: .patience * 5)
            heard.append(name)
        }
        try poster.postOnceConnected(names[0])
        try #require(entered.wait(for: 1))

        let (before, busBefore) = (residentBytes(of: getpid()), bus.residentBytes)
        let posts = isLongRun ? 300_000 : 50_000
        for number in 0..<posts {
            try poster.postOnceConnected(names[number % 50])
            // So that the poster itself doesn't coalesce, and the test doesn't depend on who is faster.
            if number % 1_000 == 0 {
                try poster.flush(timeout: .patience)
                _ = waitUntil(timeout: .patience) {
                    observing.statistics.coalescedDeliveries >= number - 4_096 - 50 - 2_000
                }
            }
        }
        try poster.synchronize(timeout: .patience)
        // The bus routed everything; the observing connection continues to read although its callback blocks.
        try #require(
            waitUntil(timeout: .patience) { observing.statistics.coalescedDeliveries >= posts - 4_096 - 50 }
        )
        let growth = residentBytes(of: getpid()) - before
        let busGrowth = bus.residentBytes - busBefore
        #expect(growth < 8 << 20, "this process grew by \(growth) bytes")
        #expect(busGrowth < 8 << 20, "the bus grew by \(busGrowth) bytes")

        mayGoOn.add()
        try observing.barrier(timeout: .patience)
        #expect(Set(heard.elements.suffix(200)).isSuperset(of: names))
        #expect(heard.count == posts + 1 - observing.statistics.coalescedDeliveries)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `a slow observer does not hold up the registration of another`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let (entered, mayGoOn, quick) = (Counter(), Counter(), Counter())
        let slow = try center.addObserver(for: "com.example.slow", timeout: .seconds(25)) { _ in
            entered.add()
            _ = mayGoOn.wait(for: 1, timeout: .patience)
        }
        try center.postOnceConnected("com.example.slow")
        try #require(entered.wait(for: 1))
        // Needs the bus's answer while the callback blocks.
        let other = try center.addObserver(for: "com.example.quick", timeout: .seconds(25)) { _ in quick.add() }
        try center.postOnceConnected("com.example.quick")
        mayGoOn.add()
        #expect(quick.wait(for: 1))
        slow.cancel()
        other.cancel()
    }

    @Test(arguments: busKinds)
    func `posts that arrive together with one whose callback blocks are heard in the meantime`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let (center, poster) = (bus.makeCenter(), bus.makeCenter())
        let (second, woken) = (Counter(), Counter())
        let blocking = try center.addObserver(for: "com.example.blocks", timeout: .seconds(25)) { _ in
            if second.wait(for: 5 * (woken.value + 1), timeout: .patience) { woken.add() }
        }
        let queue = DispatchQueue(label: "org.notifybus.test")
        let other = try center.addObserver(for: "com.example.other", queue: queue, timeout: .seconds(25)) { _ in
            second.add()
        }
        try poster.postOnceConnected("com.example.unheard")
        for _ in 0..<20 {
            // All of this accumulates while the bus is stopped, and then goes out at once.
            bus.stop()
            let before = woken.value
            try poster.postOnceConnected("com.example.blocks")
            for _ in 0..<5 { try poster.postOnceConnected("com.example.other") }
            bus.resume()
            try #require(woken.wait(for: before + 1, timeout: .patience))
        }
        blocking.cancel()
        other.cancel()
    }
}

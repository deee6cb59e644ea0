// SPDX-License-Identifier: Apache-2.0

import Logging
import NotifyBus
import NotifyServiceLifecycle
import ServiceLifecycle
import TestSupport
import Testing

/// The trait ServiceLifecycle.
@Suite struct ServiceTests {

    /// A group that is shut down by hand.
    private func group(_ service: any Service) -> ServiceGroup {
        ServiceGroup(configuration: .init(services: [.init(service: service)], logger: Logger(label: "test")))
    }

    @Test(arguments: busKinds)
    func `a service handles each name in order, and ends with the graceful shutdown`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let (center, other) = (bus.makeCenter(), bus.makeCenter())
        let heard = Recorder<String>()
        let group = group(NotifyService(center, matching: .prefix("com.example.")) { heard.append($0.rawValue) })
        async let running: Void = group.run()
        #expect(
            try await eventually {
                try other.post("com.example.begin")
                return heard.count > 0
            }
        )
        for number in 0..<3 { try other.post(NotifyName("com.example.\(number)")) }
        #expect(await eventually { heard.elements.last == "com.example.2" })
        #expect(heard.elements.suffix(3) == ["com.example.0", "com.example.1", "com.example.2"])
        await group.triggerGracefulShutdown()
        try await running
        #expect(center.isConnected)
    }

    @Test(arguments: busKinds)
    func `a graceful shutdown ends a service at once that is not live yet, also with a stopped bus`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        defer { bus.resume() }
        let began = Counter()
        let group = group(NotifyService(bus.makeCenter(), for: "com.example.a") { _ in began.add() })
        async let running: Void = group.run()
        try await Task.sleep(for: .milliseconds(200))
        let clock = ContinuousClock()
        let asked = clock.now
        await group.triggerGracefulShutdown()
        // Without an error, and long before the 10 s for which a bus may not answer.
        try await running
        #expect(clock.now - asked < .seconds(5))
        #expect(began.value == 0)
    }

    @Test(arguments: busKinds)
    func `a graceful shutdown lets a closure that is running go on to its end, and drops what waits`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        let (center, other) = (bus.makeCenter(), bus.makeCenter())
        let (began, ended, wasCancelled) = (Counter(), Counter(), Counter())
        let group = group(
            NotifyService(center, for: "com.example.a") { _ in
                began.add()
                // Until the shutdown, which comes to a service some time after it was asked for.
                _ = await eventually { Task.isShuttingDownGracefully }
                if Task.isCancelled { wasCancelled.add() }
                ended.add()
            }
        )
        async let running: Void = group.run()
        #expect(
            try await eventually {
                try other.post("com.example.a")
                return began.value == 1
            }
        )
        for _ in 0..<3 { try other.post("com.example.a") }
        try await other.synchronize()
        #expect(ended.value == 0)
        await group.triggerGracefulShutdown()
        try await running
        #expect((began.value, ended.value, wasCancelled.value) == (1, 1, 0))
    }

    @Test(arguments: busKinds)
    func `without a bus a service fails, and with a center that waits for it hears names once there is one`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        bus.kill()
        await #expect(throws: NotifyBusError.self) {
            try await NotifyService(bus.makeCenter(), for: "com.example.a") { _ in }.run()
        }
        let heard = Counter()
        let group = group(NotifyService(bus.makeCenter(waitsForBus: true), for: "com.example.a") { _ in heard.add() })
        async let running: Void = group.run()
        try bus.restart()
        let other = bus.makeCenter()
        #expect(
            try await eventually {
                try other.post("com.example.a")
                return heard.value > 0
            }
        )
        await group.triggerGracefulShutdown()
        try await running
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import NotifyCore
import TestSupport
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter
private typealias NotifyName = NotifyBus.NotifyName
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// A post never blocks: without a connection it waits in the center, and the center gets one.
@Suite struct PostingTests {
    private static let names: [NotifyName] = ["com.example.a", "com.example.b", "com.example.c"]

    @Test(arguments: busKinds)
    func `posts made before there is a connection are heard in order, and the later ones after them`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let (observing, center) = (bus.makeCenter(), bus.makeCenter())
        let heard = Recorder<NotifyName>()
        let observation = try observing.addObserver(matching: .prefix("com.example."), timeout: .patience) {
            heard.append($0)
        }
        bus.stop()
        for name in PostingTests.names { try center.post(name) }
        #expect(center.waitingPosts == 3 && !center.isConnected)
        let flush = #expect(throws: NotifyBusError.self) { try center.flush(timeout: .milliseconds(10)) }
        #expect(flush?.code == .timedOut)
        bus.resume()
        try center.flush(timeout: .patience)
        #expect(center.waitingPosts == 0 && center.isConnected)
        for name in PostingTests.names { try center.post(name) }
        try #require(heard.wait(forCount: 6, timeout: .patience))
        #expect(heard.elements == PostingTests.names + PostingTests.names)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `posts made while the bus is away are written once it is back`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        try center.connect(timeout: .patience)
        try center.post("com.example.first")
        bus.kill()
        // A call that asks the bus learns that it is away; a post need not.
        try #require(waitUntil { (try? center.synchronize(timeout: .seconds(1))) == nil })
        for name in PostingTests.names { try center.post(name) }
        // It tries again in between, which takes no time: no process listens.
        let error = #expect(throws: NotifyBusError.self) {
            while true { try center.flush(timeout: .patience) }
        }
        #expect(error?.code == .noBus || error?.code == .disconnected)
        let connect = #expect(throws: NotifyBusError.self) { try center.connect(timeout: .patience) }
        #expect(connect?.code == .noBus && !center.isConnected)
        try bus.restart()
        try center.connect(timeout: .patience)
        try center.synchronize(timeout: .patience)
        #expect(center.waitingPosts == 0 && center.isConnected && center.statistics.lost == 0)
        #expect(center.statistics.posted == 4)
    }

    @Test func `a post without a bus is a change of the connection, and lost when the center is closed`() async throws {
        let center = NotifyCenter(bus: .address("unix:path=/nonexistent/bus"))
        for name in PostingTests.names { try center.post(name) }
        for await change in center.connectionChanges() {
            #expect(change.kind == .disconnected && change.error?.code == .noBus)
            #expect("\(change)".hasPrefix("disconnected: The bus at 'unix:path=/nonexistent/bus' cannot be reached"))
            break
        }
        #expect(!center.isConnected && center.waitingPosts == 3 && center.statistics.posted == 3)
        for wait in [{ try await center.flush() }, { try await center.connect() }, { try await center.synchronize() }]
            as [() async throws -> Void]
        {
            let error = await #expect(throws: NotifyBusError.self) { try await wait() }
            #expect(error?.code == .noBus)
        }
        await center.close()
        #expect(center.statistics.lost == 3 && center.waitingPosts == 0)
        let error = #expect(throws: NotifyBusError.self) { try center.post("com.example.a") }
        #expect(error?.code == .closed)
    }

    @Test(arguments: busKinds)
    func `a center that only posts is connected once it has posted`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let changes = center.connectionChanges()
        try center.post("com.example.a")
        for await change in changes {
            #expect(change == .connected)
            break
        }
        #expect(center.isConnected)
    }

    @Test func `what can't be posted at once is an error`() throws {
        let center = NotifyCenter(bus: .address("unix:path=/nonexistent/bus"))
        var posted = 0
        let full = #expect(throws: NotifyBusError.self) {
            while posted < 100_000 {
                try center.post(NotifyName("com.example.n\(posted)"))
                posted += 1
            }
        }
        #expect(full?.code == .queueFull && posted == 65_536)
        // One that waits stands for all.
        try center.post("com.example.n7")
        #expect(center.statistics.posted == 65_537 && center.statistics.coalescedPosts == 1)
    }

    @Test(arguments: busKinds)
    func `what was posted is heard although its center is released at once`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let observing = bus.makeCenter()
        let heard = Recorder<NotifyName>()
        let observation = try observing.addObserver(matching: .prefix("com.example."), timeout: .patience) {
            heard.append($0)
        }
        for name in PostingTests.names { try NotifyCenter(bus: .address(bus.address)).post(name) }
        #expect(heard.wait(forCount: 3, timeout: .patience))
        observation.cancel()
    }

    @Test(.serialized, arguments: busKinds)
    func `what was posted is heard although the program ends at once`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let observing = bus.makeCenter()
        let heard = Recorder<NotifyName>()
        let observation = try await observing.addObserver(matching: .prefix("com.example.")) { heard.append($0) }
        try handOver(bus.address, to: "ends-at-once")
        await #expect(processExitsWith: .success) {
            let center = NotifyCenter(bus: .address(try handedOver(to: "ends-at-once")))
            for name: NotifyName in ["com.example.a", "com.example.b", "com.example.c"] { try center.post(name) }
            exit(0)
        }
        #expect(heard.wait(forCount: 3, timeout: .patience))
        #expect(heard.elements == PostingTests.names)
        observation.cancel()
    }

    @Test func `a program that has posted without a bus ends at once`() async throws {
        await #expect(processExitsWith: .success) {
            let center = NotifyCenter(bus: .address("unix:path=/nonexistent/bus"))
            try center.post("com.example.a")
            guard (try? await center.flush()) == nil else { exit(1) }
            exit(0)
        }
    }
}

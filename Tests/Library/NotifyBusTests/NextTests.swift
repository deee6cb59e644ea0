// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import NotifyCore
import TestSupport
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter
private typealias NotifyName = NotifyBus.NotifyName
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// Waiting for one notification.
@Suite struct NextTests {

    @Test(arguments: busKinds)
    func `the action runs once every later post is heard, and its answer is the next notification`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        let (center, server) = (bus.makeCenter(), bus.makeCenter())
        let observation = try await server.addObserver(for: "com.example.ping") { [weak server] _ in
            try? server?.postOnceConnected("com.example.pong")
        }
        for _ in 0..<(isLongRun ? 1_000 : 100) {
            let answer = try await center.next(matching: .prefix("com.example.po"), timeout: .patience) {
                try center.postOnceConnected("com.example.ping")
            }
            #expect(answer == "com.example.pong")
        }
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `it is the first of several posts, without those of this center if they are ignored`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        let (center, other) = (bus.makeCenter(), bus.makeCenter())
        // Everything would include the "self." names of the tests that run beside this one.
        let name = try await center.next(matching: .prefix("com.example."), ignoringOwnPosts: true) {
            try center.postOnceConnected("com.example.own")
            try await center.synchronize()
            for name: NotifyName in ["com.example.a", "com.example.b"] { try other.postOnceConnected(name) }
        }
        #expect(name == "com.example.a")
    }

    @Test(arguments: busKinds)
    func `when its time is up it throws an error that says so`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let late = await #expect(throws: NotifyBusError.self) {
            try await center.next(of: "com.example.never", timeout: .milliseconds(1))
        }
        #expect(late?.code == .timedOut)
        #expect(late?.description.contains("in time") == true)
        // The action takes longer than there is time, and is not interrupted.
        let ran = Counter()
        // It begins only if the bus confirms the registration in time.
        for _ in 0..<100 where ran.value == 0 {
            await #expect(throws: NotifyBusError.self) {
                try await center.next(of: "com.example.never", timeout: .milliseconds(500)) {
                    try await Task.sleep(for: .milliseconds(600))
                    ran.add()
                }
            }
        }
        #expect(ran.value == 1)
        // A bus that does not answer.
        bus.stop()
        defer { bus.resume() }
        let error = await #expect(throws: NotifyBusError.self) {
            try await center.next(of: "com.example.y", timeout: .milliseconds(1)) { ran.add() }
        }
        #expect(error?.code == .timedOut)
        #expect(error?.description == "The bus did not confirm the registration in time.")
        #expect(ran.value == 1)
    }

    @Test(arguments: anyBusKind())
    func `a time longer than any clock knows is no limit`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let name = try await center.next(of: "com.example.x", timeout: .seconds(Int64.max)) {
            try center.postOnceConnected("com.example.x")
        }
        #expect(name == "com.example.x")
    }

    @Test(arguments: busKinds)
    func `it ends with the error of the action, of the center, or of a bus that is not there`(kind: BusKind)
        async throws
    {
        struct Refusal: Error {}
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        await #expect(throws: Refusal.self) { try await center.next(of: "com.example.x") { throw Refusal() } }
        let error = await #expect(throws: NotifyBusError.self) {
            try await center.next(of: "com.example.x") { await center.close() }
        }
        #expect(error?.code == .closed)
        let nowhere = NotifyCenter(bus: .address("unix:path=/nonexistent/bus"))
        let absence = await #expect(throws: NotifyBusError.self) { try await nowhere.next(of: "com.example.x") {} }
        #expect(absence?.code == .noBus)
    }
}

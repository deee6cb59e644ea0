// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

@testable import NotifyCore

private typealias NotifyCenter = NotifyBus.NotifyCenter
private typealias NotifyName = NotifyBus.NotifyName
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// No caller waits for something that can't come any more.
@Suite struct ClosingTests {
    @Test(arguments: busKinds)
    func `an observer that is added while the center closes never runs`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let name = try NotifyName("self.closing.\(kind)")
        let (begun, mayEnd, isClosed) = (Counter(), Counter(), Counter())
        let slow = try center.addObserver(for: "com.example.slow", timeout: .seconds(25)) { _ in
            begun.add()
            _ = mayEnd.wait(for: 1)
        }
        try center.postOnceConnected("com.example.slow")
        try #require(begun.wait(for: 1))
        startThread {
            // Waits for the callback.
            try? center.close(timeout: nil)
            isClosed.add()
        }
        let heard = Counter()
        var observations: [NotifyCenter.Observation] = []
        let isRefused = waitUntil {
            do throws(NotifyBusError) {
                observations.append(try center.addObserver(for: name, timeout: .seconds(25)) { _ in heard.add() })
                return false
            } catch {
                return error.code == .closed
            }
        }
        #expect(isRefused && isClosed.value == 0)
        mayEnd.add()
        try #require(isClosed.wait(for: 1))
        let other = bus.makeCenter()
        let end = Counter()
        let last = try other.addObserver(for: name, timeout: .seconds(25)) { _ in end.add() }
        try other.postOnceConnected(name)
        try #require(end.wait(for: 1))
        #expect(heard.value == 0)
        for observation in observations + [slow, last] { observation.cancel() }
    }

    @Test(arguments: anyBusKind())
    func `a thread that waits for another's attempt to connect learns that it has failed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        try center.postOnceConnected("com.example.x")
        try center.synchronize(timeout: .patience)
        bus.kill()
        #expect(throws: NotifyBusError.self) { try center.synchronize(timeout: .patience) }
        var hanging: HangingBus? = try HangingBus(inPlaceOf: bus, isFull: true)
        let outcomes = Recorder<NotifyBusError.Code?>()
        for _ in 0..<2 {
            startThread {
                do throws(NotifyBusError) {
                    try center.synchronize(timeout: nil)
                    outcomes.append(nil)
                } catch {
                    outcomes.append(error.code)
                }
            }
        }
        let outbox = center.core.engine.outbox
        try #require(waitUntil { outbox.state.withLock { !$0.laterBarriers.isEmpty } })
        withExtendedLifetime(hanging) {}
        hanging = nil
        try #require(outcomes.wait(forCount: 2, timeout: .patience))
        #expect(outcomes.elements == [.noBus, .noBus])
    }

    @Test(.serialized, arguments: busKinds)
    func `a post for which no thread can be started is written when one can`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        try handOver("\(bus.address) \(bus.processID)", to: "no-thread")
        // In a process of its own, which runs out of descriptors.
        await #expect(processExitsWith: .success) {
            let words = try handedOver(to: "no-thread").split(separator: " ")
            guard let process = pid_t(words[1]) else { exit(2) }
            let center = NotifyCenter(bus: .address(String(words[0])))
            try center.postOnceConnected("com.example.first")
            kill(process, SIGSTOP)
            defer { kill(process, SIGCONT) }
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            var few = limit
            few.rlim_cur = 3
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &few)
            var number = 0
            while center.waitingPosts == 0, number < 100_000 {
                number += 1
                try center.postOnceConnected(NotifyName("com.example.n\(number)"))
            }
            guard center.waitingPosts > 0 else { exit(3) }
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            kill(process, SIGCONT)
            try center.postOnceConnected("com.example.last")
            guard waitUntil({ center.waitingPosts == 0 }) else { exit(4) }
            exit(0)
        }
    }

    /// The callback of the first ends at some point while the end of another one's is being handled.
    @Test(arguments: anyBusKind())
    func `everybody who waits for the end of a callback is told`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for round in 0..<20 {
            let centers = (0..<3).map { _ in bus.makeCenter() }
            let (begun, told) = (Counter(), Counter())
            let gates = centers.map { _ in Counter() }
            let observations = try zip(centers, gates).map { center, gate in
                try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in
                    begun.add()
                    _ = gate.wait(for: 1)
                }
            }
            try centers[0].postOnceConnected("com.example.x")
            try #require(begun.wait(for: 3))
            let observers = observations.map(\.core.observer)
            for observer in observers { observer.cancel() }
            observers[0].whenIdle { told.add() }
            for _ in 0..<30_000 { observers[1].whenIdle {} }
            observers[0].whenIdle { told.add() }
            gates[2].add()
            usleep(UInt32(round * 100))
            gates[0].add()
            #expect(told.wait(for: 2))
            gates[1].add()
            for observation in observations { observation.cancel() }
        }
    }

    @Test func `a closed center keeps no program that wanted to follow its state`() throws {
        let center = NotifyCenter(bus: .address("unix:path=/nonexistent"))
        try? center.close(timeout: nil)
        #expect(throws: NotifyBusError.self) { try center.lifecycle.changes() }
        #expect(center.core.peer?.states.isFollowed == false)
    }
}

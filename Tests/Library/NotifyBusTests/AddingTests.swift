// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import NotifyCore

/// Observers that are added while the thread that reads has other things to do.
@Suite struct AddingTests {
    @Test(arguments: busKinds)
    func `posts that arrive while a thread adds observers are heard once each and in order`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCoreCenter()
        let poster = bus.makeCoreCenter()
        let names = try (0..<50).map { try NotifyName("com.example.heard.\($0)") }
        let heard = Recorder<String>()
        let observation = try center.addObserver(matching: .names(names), timeout: .seconds(25)) {
            heard.append($0.string)
        }
        let hasPosted = Counter()
        startThread {
            for _ in 0..<20 {
                for name in names { try? poster.postOnceConnected(name) }
                try? poster.synchronize(timeout: nil)
            }
            hasPosted.add()
        }
        var round = 0
        while hasPosted.value == 0 {
            round += 1
            let other = try center.addObserver(for: NotifyName("com.example.other\(round)"), timeout: .seconds(25)) {
                _ in
            }
            other.cancel()
        }
        try center.barrier()
        #expect(heard.elements == (0..<20).flatMap { _ in names.map(\.string) })
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `a thread that waits for a bus that does not answer holds up nobody else`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCoreCenter()
        let first = try center.addObserver(for: "com.example.first", timeout: .seconds(25)) { _ in }
        bus.stop()
        let outcomes = Recorder<NotifyBusError.Code?>()
        startThread {
            do {
                let observation = try center.addObserver(for: "com.example.second", timeout: .seconds(25)) { _ in }
                outcomes.append(nil)
                observation.cancel()
            } catch {
                outcomes.append((error as? NotifyBusError)?.code)
            }
        }
        // It has registered, so it waits or is about to.
        try #require(waitUntil { center.engine.registry.allTopics.count == 2 })
        let error = try #require(throws: NotifyBusError.self) { try center.barrier(timeout: .milliseconds(50)) }
        #expect(error.code == .timedOut)
        let reached = Counter()
        center.perform { _ in reached.add() }
        #expect(reached.wait(for: 1))
        first.cancel()
        try? center.close(timeout: nil)
        #expect(outcomes.wait(forCount: 1))
        #expect(outcomes.elements == [NotifyBusError.Code.closed])
        bus.resume()
    }
}

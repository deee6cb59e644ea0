// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import NotifyCore

/// Threads that add observers take the place of the thread that reads while it sleeps.
@Suite struct BorrowingTests {
    @Test(arguments: busKinds)
    func `posts that arrive while a thread adds observers are heard once each and in order`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let poster = bus.makeCenter()
        let names = try (0..<50).map { try NotifyName("com.example.heard.\($0)") }
        let heard = Recorder<String>()
        let observation = try center.addObserver(forNames: names) { heard.append($0.string) }
        let hasPosted = Counter()
        startThread {
            for _ in 0..<20 {
                for name in names { try? poster.post(name) }
                try? poster.synchronize()
            }
            hasPosted.add()
        }
        var round = 0
        while hasPosted.value == 0 {
            round += 1
            let other = try center.addObserver(forName: "com.example.other\(round)") { _ in }
            other.cancel()
        }
        try center.barrier()
        #expect(heard.elements == (0..<20).flatMap { _ in names.map(\.string) })
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `a thread that waits for a bus that does not answer holds up nobody else`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let first = try center.addObserver(forName: "com.example.first") { _ in }
        let threads = try #require(center.engine.threads)
        bus.stop()
        let outcomes = Recorder<NotifyBusError.Code?>()
        startThread {
            do {
                let observation = try center.addObserver(forName: "com.example.second") { _ in }
                outcomes.append(nil)
                observation.cancel()
            } catch {
                outcomes.append((error as? NotifyBusError)?.code)
            }
        }
        try #require(
            waitUntil {
                guard let leader = threads.borrowLead() else { return true }
                threads.returnLead(to: leader)
                return false
            }
        )
        // Only the thread that reads can say that there is no answer.
        let error = try #require(throws: NotifyBusError.self) { try center.barrier(timeout: .milliseconds(50)) }
        #expect(error.code == .timedOut)
        let reached = Counter()
        center.perform { _ in reached.add() }
        #expect(reached.wait(for: 1))
        first.cancel()
        center.close()
        #expect(outcomes.wait(forCount: 1))
        #expect(outcomes.elements == [NotifyBusError.Code.closed])
        bus.resume()
    }

    @Test func `a call made from a template has the bytes that libdbus would give it`() {
        for member in ["AddMatch", "GetConnectionUnixUser"] {
            for wantsReply in [true, false] {
                let template = BusCallTemplate(member, wantsReply: wantsReply)
                let draft = wantsReply ? BusConnection.Draft.busCall(member) : .oneWayBusCall(member)
                for (serial, text) in ["", "a", "bcd", "type='signal'", "ä", String(repeating: "x", count: 5_000)]
                    .enumerated()
                {
                    let serial = UInt32(serial * 100_000 + 1)
                    let expected = BusConnection.withBytes(draft, [.string(text)], serial: serial) { Array($0) }
                    #expect(template?.withBytes(text, serial: serial) { Array($0) } == expected)
                }
            }
        }
    }
}

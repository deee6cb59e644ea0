// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

@Suite struct IdleTests {
    @Test(arguments: anyBusKind())
    func `neither other names nor programs that come and go wake an idle wait`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let idle = try bus.startWaiting(["-f", "com.example.idle"])
        let inTime = try bus.startWaiting(["-f", "-t", "1h", "com.example.idle.*"])
        let poster = bus.makeCenter()
        // The first time they may still be coming to rest.
        let isNeverWoken = try waitUntil {
            let before = [idle, inTime].map { wakeUps(of: $0.pid) }
            for number in 1...100 { try poster.postOnceConnected(NotifyName("com.example.other.\(number)")) }
            // It comes, hears nothing, and leaves after its timeout.
            #expect(try bus.run("notify-wait", ["-q", "-t", "2s", "com.example.nothing"]).status == 2)
            return [idle, inTime].map { wakeUps(of: $0.pid) } == before && before.allSatisfy { $0 > 0 }
        }
        #expect(isNeverWoken)

        // It still hears its name.
        try poster.postOnceConnected("com.example.idle")
        try idle.waitForOutputLines(1)
        print(
            "notify-wait on \(kind): \(peakResidentBytes(of: idle.pid) / 1024) kB at most, idle in \(threadCount(of: idle.pid)) threads"
        )
    }

    @Test(arguments: anyBusKind())
    func `a post now and then wakes the thread that reads and the one that writes, once each`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["-f", "com.example.x"])
        let poster = bus.makeCenter()
        var posts = 0
        // On a busy machine a callback may seem to take long, which wakes a third thread.
        let wakesTwo = try waitUntil {
            let before = wakeUps(of: waiting.pid)
            for _ in 1...10 {
                try poster.postOnceConnected("com.example.x")
                posts += 1
                try waiting.waitForOutputLines(posts)
                try passTime("10ms")
            }
            return wakeUps(of: waiting.pid) - before <= 20
        }
        #expect(wakesTwo)
    }

    @Test(arguments: busKinds)
    func `a wait that has heard 20,000 notifications uses no more memory than after 1,000`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["-f", "com.example.x"], output: .null)
        let heard = Counter()
        let center = bus.makeCenter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        func post(_ times: Int) throws {
            for _ in 0..<times {
                try center.postOnceConnected("com.example.x")
                if heard.value + 500 < center.statistics.posted {
                    try #require(heard.wait(for: center.statistics.posted - 100))
                }
            }
            try #require(heard.wait(for: center.statistics.posted))
        }
        try post(1_000)
        let before = residentBytes(of: waiting.pid)
        try post(19_000)
        #expect(residentBytes(of: waiting.pid) < before + 2 << 20)
        observation.cancel()
    }
}

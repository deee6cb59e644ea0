// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import NotifyCore

@Suite struct QueueGaugeTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    /// A gauge that checks every 10 ms, and finds these queues each time. More than 100 bytes are too much.
    private func look(_ gauge: inout QueueGauge, from first: Int, _ times: Int = 1, _ bytes: (Int) -> [String: Int]) {
        for index in first..<first + times {
            gauge.noteLook(start + Int64(index) * 10)
            gauge.take(queues(bytes(index)), now: start + Int64(index) * 10)
        }
    }

    private func queues(_ bytes: [String: Int], limit: Int = 800) -> BrokerQueues {
        var queues = BrokerQueues()
        queues.queues = bytes.map { BrokerQueues.Queue(name: $0.key, user: 1_000, bytes: $0.value) }
        queues.limits = [0: 1, 1_000: limit]
        return queues
    }

    @Test func `posters wait while queues shrink, however slowly`() {
        var gauge = QueueGauge(isOpen: true)
        look(&gauge, from: 0) { _ in [":1.1": 50, ":1.2": 50] }
        #expect(!gauge.isTooHigh)
        look(&gauge, from: 1, 1_000) { [":1.1": 2_000 - $0] }
        #expect(gauge.isTooHigh)
        look(&gauge, from: 1_001) { _ in [":1.1": 100] }
        #expect(!gauge.isTooHigh)
        look(&gauge, from: 1_002) { _ in [":1.1": 50, ":1.2": 51] }
        #expect(gauge.isTooHigh)
    }

    @Test func `posters wait for an observer that reads even if others post more in the meantime`() {
        var gauge = QueueGauge(isOpen: true)
        look(&gauge, from: 0, 1_000) { [":1.1": $0 % 10 == 0 ? 1_000 + $0 : 1_100 + $0] }
        #expect(gauge.isTooHigh)
    }

    @Test func `posters wait only a while for an observer that does not read, and always for one that does`() {
        var gauge = QueueGauge(isOpen: true)
        look(&gauge, from: 0, 50) { [":1.1": 1_000 + $0] }
        #expect(gauge.isTooHigh)
        look(&gauge, from: 50, 10) { [":1.1": 1_000 + $0] }
        #expect(!gauge.isTooHigh)
        look(&gauge, from: 60) { _ in [":1.1": 2_000, ":1.2": 101] }
        #expect(gauge.isTooHigh)
        look(&gauge, from: 61) { _ in [":1.1": 2_000, ":1.2": 100] }
        #expect(!gauge.isTooHigh)
        // It reads again.
        look(&gauge, from: 62) { _ in [":1.1": 1_999] }
        #expect(gauge.isTooHigh)
    }

    @Test func `however much the bus allows, queues take a few megabytes, and one more for each observer`() {
        var gauge = QueueGauge(isOpen: true)
        for (count, bytes, isTooHigh) in [
            (1, 5_000_000, false), (1, 5_000_001, true), (10, 1_400_000, false), (10, 1_400_001, true),
        ] {
            let all = Dictionary(uniqueKeysWithValues: (0..<count).map { (":1.\($0)", bytes) })
            gauge.noteLook(start)
            gauge.take(queues(all, limit: 1_000_000_000), now: start)
            #expect(gauge.isTooHigh == isTooHigh, "\(count) queues of \(bytes) bytes")
        }
    }

    @Test func `the longer the bus takes to answer, the later the next check`() {
        var gauge = QueueGauge(isOpen: true)
        for (response, next) in [(1, 5), (40, 40)] as [(Int64, Int64)] {
            gauge.noteLook(start)
            gauge.take(queues([":1.1": 1_000]), now: start + response)
            #expect(gauge.nextLook == start + response + next)
        }
    }

    @Test func `while queues are short, checks take a tenth of the time that the bus is in use`() {
        var gauge = QueueGauge(isOpen: true)
        var found = queues([":1.1": 20])
        found.ruleCount = 40_000
        #expect(gauge.mayLook)
        gauge.noteLook(start)
        gauge.take(found, now: start + 2)
        #expect(!gauge.mayLook)
        gauge.noteUse(nanoseconds: 17_999_999)
        #expect(!gauge.mayLook)
        gauge.noteUse(nanoseconds: 1)
        #expect(gauge.mayLook)
    }

    @Test func `a slow answer of a bus with few rules doesn't put off the next check, since others keep it busy`() {
        var gauge = QueueGauge(isOpen: true)
        var found = queues([":1.1": 20])
        (found.connectionCount, found.ruleCount) = (20, 100)
        gauge.noteLook(start)
        gauge.take(found, now: start + 100)
        gauge.noteUse(nanoseconds: 1_080_000)
        #expect(gauge.mayLook)
    }

    @Test func `when queues have grown, the next check comes soon, however much there is to count`() {
        var gauge = QueueGauge(isOpen: true)
        for bytes in [50, 101] {
            gauge.noteLook(start)
            var found = queues([":1.1": bytes])
            found.ruleCount = 1_000_000
            gauge.take(found, now: start + 1)
            #expect(gauge.mayLook, "\(bytes)")
        }
    }

    @Test func `few checks over a long time give up on nobody`() {
        var gauge = QueueGauge(isOpen: true)
        for second in 0..<20 {
            gauge.noteLook(start + Int64(second) * 1_000)
            gauge.take(queues([":1.1": 1_000]), now: start + Int64(second) * 1_000)
        }
        #expect(gauge.isTooHigh)
    }

    @Test func `a poster has few posts in flight until it knows that observers read, and when they do not`() {
        var gauge = QueueGauge(isOpen: true)
        #expect(gauge.window == 64)
        look(&gauge, from: 0) { _ in [":1.1": 20] }
        #expect(gauge.window == 256)
        look(&gauge, from: 3) { _ in [":1.1": 80] }
        #expect(gauge.window == 256)
        look(&gauge, from: 4) { _ in [":1.1": 101] }
        #expect(gauge.window == 64)
        #expect(QueueGauge(isOpen: false).window == 256)
    }

    @Test func `a bus that does not report its queues is asked once`() {
        var gauge = QueueGauge(isOpen: true)
        look(&gauge, from: 0) { _ in [":1.1": 1_000] }
        #expect(gauge.isTooHigh)
        gauge.noteLook(start + 10)
        gauge.take(nil, now: start + 10)
        #expect(!gauge.isTooHigh && !gauge.isOpen && !gauge.mayLook)
    }
}

@Suite struct QueueTests {
    @Test(.enabled(if: BusKind.broker.unavailable == nil, "dbus-broker can't be started here"))
    func `posters wait for a while, but not forever, for a program that does not read`() throws {
        let bus = try PrivateBus(.broker)
        let deaf = try RawBusClient(address: bus.address)
        try deaf.addMatch("type='signal'")
        let count = 40_000
        let command = "\(shellWord(try productPath("notify-post"))) --address \(bus.address) -"
        let result = try run("sh", ["-c", "yes com.example.deaf | head -n \(count) | \(command)"])
        #expect(result.status == 0 && result.errorOutput.isEmpty, "\(result.errorOutput)")
    }
}

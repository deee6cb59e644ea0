// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import Testing

@testable import NotifyCoordinator

/// When calls that wait begin while the bus has more.
@Suite struct ReadingFirstTests {
    private static let longest = ReadingFirst.longest
    fileprivate static let millisecond: Int64 = 1_000_000

    /// A bus and its reader, a few calls a millisecond; between two times one call is handled, if any may begin.
    private struct Agent {
        /// By their senders: `:1.0` floods, `:1.1` does not; nil stands for the answer to what the bus was asked.
        var queue = Fifo<String?>()
        var calls = CallTurns<String, String>(Quotas())
        var reading = ReadingFirst()
        var now: Int64 = 0
        private(set) var handled: [String] = []

        init() {
            for number in 0..<2 {
                _ = calls.identify(":1.\(number)", as: Caller(user: 1000 + UInt32(number)), mayBegin: false)
            }
        }

        mutating func pass() {
            now += ReadingFirstTests.millisecond
            for _ in 0..<10 {
                guard let call = queue.popFirst() else { break }
                guard let sender = call else {
                    reading.hasAnswered(now: now)
                    continue
                }
                _ = calls.take(sender, CallLoad(size: 1), from: sender, mayBegin: false)
            }
            guard !calls.isEmpty else { return }
            switch reading.next(isBusy: !queue.isEmpty, now: now) {
            case .read: break
            case .ask: queue.append(nil)
            case .serve:
                guard case .call(let call, let charge)? = calls.next() else { return }
                handled.append(call)
                calls.end(charge)
            }
        }
    }

    @Test func `with 600 calls of one user before it on the bus, another's is one of the first two to be handled`() {
        var agent = Agent()
        for _ in 0..<600 { agent.queue.append(":1.0") }
        agent.queue.append(":1.1")
        while agent.handled.count < 3 { agent.pass() }
        #expect(agent.handled.prefix(2).contains(":1.1"))
    }

    @Test func `one who never stops calling keeps others waiting for a quarter of a second at most`() {
        var agent = Agent()
        agent.queue.append(":1.1")
        for _ in 0..<1_000 { agent.queue.append(":1.0") }
        while agent.handled.isEmpty {
            for _ in 0..<20 { agent.queue.append(":1.0") }
            agent.pass()
        }
        #expect(agent.handled == [":1.1"] && agent.now <= ReadingFirstTests.longest + 2 * ReadingFirstTests.millisecond)
        // Calls then have their turns for as long, and again after that.
        for _ in 0..<1_000 {
            for _ in 0..<20 { agent.queue.append(":1.0") }
            agent.pass()
        }
        #expect((490...510).contains(agent.handled.count), "\(agent.handled.count)")
    }

    @Test func `while there is nothing to read, calls begin without asking the bus`() {
        var reading = ReadingFirst()
        #expect(reading.next(isBusy: false, now: 1) == .serve && reading.end == nil)
        #expect(reading.next(isBusy: true, now: 2) == .ask && reading.end == 2 + ReadingFirst.longest)
        // The bus may have more although nothing of it has come.
        #expect(reading.next(isBusy: false, now: 3) == .read)
        reading.hasAnswered(now: 4)
        #expect(reading.next(isBusy: true, now: 5) == .serve && reading.end == nil)
        #expect(reading.next(isBusy: false, now: 4 + ReadingFirst.longest) == .serve)
        // An answer that comes late changes nothing.
        reading.hasAnswered(now: 5 + ReadingFirst.longest)
        #expect(reading.next(isBusy: true, now: 6 + ReadingFirst.longest) == .ask)
    }
}

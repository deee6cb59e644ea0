// SPDX-License-Identifier: Apache-2.0

import NotifyCore
public import NotifyNames
import TestSupport
import Testing

extension Int: Coalescing {
    @usableFromInline package var name: Int { self }
}

@Suite struct CoalescingQueueTests {
    @Test func `4,096 are queued individually, in order`() {
        var queue = CoalescingQueue<Int>()
        for number in 0..<4_096 { #expect(queue.enqueue(number % 2) == .queued) }
        #expect(queue.enqueue(0) == .coalesced)
        #expect(queue.enqueue(1) == .coalesced)
        #expect(queue.enqueue(2) == .queued)
        #expect(queue.enqueue(2) == .coalesced)
        #expect(queue.count == 4_097)
        for number in 0..<4_096 { #expect(queue.popFirst() == number % 2) }
        #expect(queue.popFirst() == 2)
        #expect(queue.popFirst() == nil)
    }

    @Test func `at most 65,536 are queued`() {
        var queue = CoalescingQueue<Int>()
        for number in 0..<65_536 { #expect(queue.enqueue(number) == .queued) }
        #expect(queue.enqueue(70_000) == .full)
        #expect(queue.enqueue(65_535) == .coalesced)
        #expect(queue.popFirst() == 0)
        #expect(queue.enqueue(70_000) == .queued)
    }

    @Test func `a name is queued again once it has been taken out`() {
        var queue = CoalescingQueue<Int>()
        for number in 0..<5_000 { #expect(queue.enqueue(number) == .queued) }
        #expect(queue.enqueue(0) == .coalesced)
        #expect(queue.enqueue(0) == .coalesced)
        #expect(queue.popFirst() == 0)
        #expect(queue.enqueue(0) == .queued)
        #expect(queue.enqueue(0) == .coalesced)
    }

    @Test func `each name is kept once on demand, and what was queued individually is coalesced`() {
        var queue = CoalescingQueue<Int>()
        for number in [1, 2, 1, 3, 2] { #expect(queue.enqueue(number) == .queued) }
        queue.keepEachOnce(true)
        #expect(queue.count == 3)
        #expect(queue.enqueue(3) == .coalesced)
        let isQueued = queue.contains(2)
        #expect(isQueued)
        #expect(queue.take(2) == [1, 2])
        let isStillQueued = queue.contains(2)
        #expect(!isStillQueued)
        queue.putBack([1, 2])
        #expect(queue.enqueue(1) == .coalesced)
        // An element that is put back may be queued again by then.
        #expect(queue.take(1) == [1])
        #expect(queue.enqueue(1) == .queued)
        queue.putBack([1])
        #expect(queue.count == 3)
        queue.keepEachOnce(false)
        #expect(queue.enqueue(1) == .queued)
        #expect(queue.take(10) == [1, 2, 3, 1])
    }

    @Test func `where there is no room for more, only what is queued already is accepted`() {
        var queue = CoalescingQueue<Int>()
        for number in [1, 2] { #expect(queue.enqueue(number) == .queued) }
        #expect(queue.enqueue(2, mayGrow: false) == .coalesced)
        #expect(queue.enqueue(3, mayGrow: false) == .full)
        queue.keep { $0 != 2 }
        #expect(queue.enqueue(2, mayGrow: false) == .full)
        #expect(queue.take(10) == [1])
    }

    @Test func `in a random run no name is lost or heard too often`() {
        var generator = SeededGenerator(seed: 1)
        var queue = CoalescingQueue<Int>()
        /// When each name was last offered, and last taken.
        var offered: [Int: Int] = [:]
        var taken: [Int: Int] = [:]
        var balance = 0
        for step in 0..<150_000 {
            // Fills and drains in turn, so that every threshold is crossed in both directions.
            let fills = (step / 20_000) % 2 == 0
            if Int.random(in: 0..<10, using: &generator) < (fills ? 8 : 3) {
                let name = Int.random(in: 0..<9_000, using: &generator)
                if queue.enqueue(name) != .full { offered[name] = step }
                balance += 1
            } else if let name = queue.popFirst() {
                taken[name] = step
                balance -= 1
            }
            #expect(queue.count <= 65_536)
        }
        while let name = queue.popFirst() {
            taken[name] = .max
            balance -= 1
        }
        #expect(balance >= 0)
        for (name, step) in offered { #expect(taken[name, default: -1] >= step) }
    }

    @Test func `what is queued is found in its place, after many were taken or made one`() {
        var queue = CoalescingQueue<Int>(individualLimit: 1)
        for number in 0..<200 { #expect(queue.enqueue(number) == .queued) }
        #expect(queue.take(130) == Array(0..<130))
        #expect(queue.enqueue(150) == .coalesced && queue.count == 70)
        #expect(queue.take(70) == Array(130..<200))
        for number in 0..<4_096 { _ = queue.enqueue(number % 2) }
        var twice = CoalescingQueue<Int>()
        for number in 0..<4_097 { _ = twice.enqueue(number == 4_096 ? 2 : number % 2) }
        twice.keepEachOnce(true)
        #expect(twice.count == 3 && twice.enqueue(1) == .coalesced)
    }

    @Test func `a post of which the socket took a part is written when it has taken the rest`() {
        var queue = PostQueue<Int>()
        queue.begin(1)
        #expect(queue.enqueued == 1 && queue.written == 0 && queue.count == 1)
        queue.noteWritten()
        #expect(queue.written == 1 && queue.count == 0)
        queue.begin(2)
        queue.startAgain()
        #expect(queue.written == 1 && queue.hasNext)
    }
}

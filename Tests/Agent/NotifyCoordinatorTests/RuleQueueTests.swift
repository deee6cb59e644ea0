// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import Testing

/// Who waits for match rules that the bus has yet to confirm.
@Suite struct RuleQueueTests {
    private enum Failure: Error { case limit }

    @Test func `each waits for the requests before it, and all go on in order`() {
        var queue = RuleQueue<String, Failure>()
        let waitsForNothing = queue.wait("none", of: "a")
        #expect(!waitsForNothing)
        let first = queue.begin()
        _ = queue.wait("one", of: "a")
        let (second, third) = (queue.begin(), queue.begin())
        _ = queue.wait("two", of: "a")
        let waits = queue.wait("three", of: "b")
        #expect(waits)
        _ = queue.begin()
        // The bus may reply to several connections in any order.
        #expect(queue.settle(third).isEmpty)
        #expect(queue.settle(first).map(\.waiter) == ["one"])
        #expect(queue.settle(second).map(\.waiter) == ["two", "three"])
        // Each counts once, and numbers that were never asked don't.
        for number in [second, 99, 0] { #expect(queue.settle(number).isEmpty) }
        _ = queue.wait("four", of: "a")
        #expect(queue.settle(4).map(\.waiter) == ["four"])
        let waitsAgain = queue.wait("five", of: "a")
        #expect(!waitsAgain)
    }

    @Test func `a failure concerns those who wait because of the same client`() {
        var queue = RuleQueue<String, Failure>()
        let number = queue.begin()
        _ = queue.wait("one", of: "a")
        _ = queue.wait("two", of: "b")
        queue.fail("b", .limit)
        _ = queue.wait("three", of: "b")
        let due = queue.settle(number)
        #expect(due.map(\.waiter) == ["one", "two", "three"])
        #expect(due.map(\.failure) == [nil, .limit, nil])
    }
}

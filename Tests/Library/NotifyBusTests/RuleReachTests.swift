// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import NotifyCore

/// Whether an observer has one rule for each name or wide ones, reply by reply.
@Suite struct RuleReachTests {
    @Test func `spare rules are asked for once, when there are many`() {
        var reach = RuleReach(sparesThreshold: 2)
        reach.add(rules: 1)
        #expect(reach.asksForSpares() == false)
        reach.add(rules: 1)
        #expect(reach.asksForSpares() && reach.hasSpares)
        #expect(reach.asksForSpares() == false)
    }

    @Test func `it is wide when all wide rules are there, and narrow again when all others are`() {
        var reach = RuleReach(sparesThreshold: 2)
        reach.add(rules: 4)
        #expect(reach.asksForSpares() && reach.beginWidening(rules: 2))
        #expect(reach.changeAnswered(isAccepted: true) == .none && reach.mode == .widening)
        #expect(reach.changeAnswered(isAccepted: true) == .changed && reach.mode == .wide)
        #expect(reach.finish() == .none && !reach.shouldNarrow)
        reach.remove(rules: 2)
        #expect(reach.shouldNarrow)
        reach.beginNarrowing()
        reach.narrows(by: 2)
        #expect(reach.changeAnswered(isAccepted: true) == .none)
        #expect(reach.changeAnswered(isAccepted: true) == .changed && reach.mode == .narrow)
        #expect(reach.asksForSpares() == true)
    }

    @Test func `refused, it stays as it was, and knows that there were too many`() {
        var reach = RuleReach()
        reach.add(rules: 4)
        #expect(reach.beginWidening(rules: 1) == false)
        #expect(reach.changeAnswered(isAccepted: false) == .refused && reach.mode == .narrow)
        #expect(!reach.beginWidening(rules: 0) && reach.finish() == .changed)
        reach.remove(rules: 2)
        reach.beginNarrowing()
        reach.narrows(by: 2)
        #expect(reach.changeAnswered(isAccepted: false) == .none)
        #expect(reach.changeAnswered(isAccepted: true) == .refused && reach.mode == .wide)
        // Two were too many this time.
        #expect(!reach.shouldNarrow)
        reach.remove(rules: 1)
        #expect(reach.shouldNarrow)
        reach.beginNarrowing()
        reach.narrows(by: 1)
        #expect(reach.changeAnswered(isAccepted: true) == .changed && reach.mode == .narrow)
    }
}

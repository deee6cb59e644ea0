// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import NotifyCoordinator

@Suite struct CallTurnsTests {
    private typealias Calls = CallTurns<String>

    /// Turns in which these connections are known: `:1.0` of user 1000, `:1.10` of user 1001, and so on.
    private func calls(_ quotas: Quotas = Quotas()) -> Calls {
        var calls = Calls(quotas)
        for user in 0..<3 {
            for number in 0..<10 { _ = calls.identify(":1.\(user * 10 + number)", as: 1000 + UInt32(user)) }
        }
        return calls
    }

    private func order(_ calls: inout Calls) -> [String] {
        var order: [String] = []
        while let turn = calls.next() { order.append(turn.call) }
        return order
    }

    @Test func `a call begins at once if nobody's call waits and there is time`() {
        var calls = calls()
        #expect(calls.take("a", size: 1, from: ":1.0", mayBegin: true) == .begin(user: 1000))
        #expect(calls.isEmpty && calls.pendingCount(of: 1000) == 1)
        #expect(calls.take("b", size: 1, from: ":1.0", mayBegin: false) == .waits)
        #expect(calls.take("c", size: 1, from: ":1.10", mayBegin: true) == .waits)
        #expect(order(&calls) == ["b", "c"] && calls.isEmpty)
        #expect(calls.take("d", size: 1, from: ":1.0", mayBegin: true) == .begin(user: 1000))
    }

    @Test func `users take turns, so do a user's connections, and one connection's calls keep their order`() {
        var calls = calls()
        for number in 0..<3 { _ = calls.take("a\(number)", size: 1, from: ":1.0", mayBegin: false) }
        for number in 0..<2 { _ = calls.take("b\(number)", size: 1, from: ":1.1", mayBegin: false) }
        for number in 0..<2 { _ = calls.take("c\(number)", size: 1, from: ":1.10", mayBegin: false) }
        #expect(order(&calls) == ["a0", "c0", "b0", "c1", "a1", "b1", "a2"])
    }

    @Test func `after a thousand calls of one user, another's is the second to be handled`() {
        var calls = calls()
        for number in 0..<1_000 { _ = calls.take("\(number)", size: 100, from: ":1.\(number % 10)", mayBegin: false) }
        _ = calls.take("other", size: 100, from: ":1.10", mayBegin: true)
        #expect(order(&calls).firstIndex(of: "other") == 1)
    }

    @Test func `in every history each call is handled once, in the order of its connection, within the quotas`() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<200 {
            var quotas = Quotas()
            quotas.calls = 6
            quotas.callBytes = 50
            var calls = Calls(quotas)
            var expected: [String: [String]] = [:]
            var handled: [String: [String]] = [:]
            var pending: [UInt32: Int] = [:]
            var unknown: Set<String> = []
            func user(_ sender: String) -> UInt32 { 1000 + UInt32(sender.utf8.last ?? 0) % 3 }
            func begin(_ call: String, _ sender: String) { handled[sender, default: []].append(call) }
            for number in 0..<200 {
                let sender = ":1.\(Int.random(in: 0..<7, using: &random))"
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<5:
                    let isRefused = calls.refusal(ofCallsFrom: sender) != nil
                    let size = Int.random(in: 1..<30, using: &random)
                    let mayBegin = Bool.random(using: &random)
                    switch calls.take("\(number)", size: size, from: sender, mayBegin: mayBegin) {
                    case .begin:
                        #expect(calls.user(of: sender) == user(sender))
                        pending[user(sender), default: 0] += 1
                        expected[sender, default: []].append("\(number)")
                        begin("\(number)", sender)
                    case .unknown:
                        #expect(unknown.insert(sender).inserted)
                        expected[sender, default: []].append("\(number)")
                    case .waits:
                        if !unknown.contains(sender) { pending[user(sender), default: 0] += 1 }
                        expected[sender, default: []].append("\(number)")
                    case .refused: continue
                    }
                    #expect(!isRefused)
                case 5:
                    if calls.follow("\(number)", from: sender) {
                        expected[sender, default: []].append("\(number)")
                    }
                case 6:
                    guard let sender = unknown.randomElement(using: &random) else { continue }
                    unknown.remove(sender)
                    let isKnown = Int.random(in: 0..<4, using: &random) > 0
                    let before = calls.pendingCount(of: user(sender))
                    for (call, _) in calls.identify(sender, as: isKnown ? user(sender) : nil) {
                        expected[sender]?.removeAll { $0 == call }
                    }
                    pending[user(sender), default: 0] += calls.pendingCount(of: user(sender)) - before
                case 7, 8:
                    if let turn = calls.next() {
                        #expect(turn.user == user(turn.sender))
                        begin(turn.call, turn.sender)
                        if !turn.counts { continue }
                    }
                default:
                    let users = pending.filter { $0.value > 0 }.keys
                    // At most those that have begun are over.
                    guard let user = users.randomElement(using: &random), calls.isEmpty else { continue }
                    calls.end(of: user)
                    pending[user, default: 0] -= 1
                }
                for (user, count) in pending {
                    #expect(calls.pendingCount(of: user) == count && count <= quotas.calls)
                }
            }
            for sender in unknown {
                for (call, _) in calls.identify(sender, as: user(sender)) {
                    expected[sender]?.removeAll { $0 == call }
                }
            }
            while let turn = calls.next() { begin(turn.call, turn.sender) }
            #expect(handled == expected.filter { !$0.value.isEmpty })
            #expect(calls.isEmpty)
        }
    }

    @Test func `calls count until they are over, and those beyond the quota are refused, of this user only`() {
        var quotas = Quotas()
        quotas.calls = 3
        var calls = calls(quotas)
        #expect(calls.take("a", size: 1, from: ":1.0", mayBegin: true) == .begin(user: 1000))
        for name in ["b", "c"] { #expect(calls.take(name, size: 1, from: ":1.1", mayBegin: false) == .waits) }
        let refusal = Refusal(.limitExceeded, "User 1000 has reached the limit of 3 pending calls.")
        #expect(calls.refusal(ofCallsFrom: ":1.2") == refusal)
        #expect(calls.take("d", size: 1, from: ":1.2", mayBegin: true) == .refused(refusal))
        #expect(calls.refusal(ofCallsFrom: ":1.10") == nil)
        // One that has had its turn is still pending.
        #expect(calls.next()?.call == "b" && calls.refusal(ofCallsFrom: ":1.0") == refusal)
        calls.end(of: 1000)
        #expect(calls.refusal(ofCallsFrom: ":1.0") == nil)
        // What follows a call is no call.
        #expect(calls.take("d", size: 1, from: ":1.1", mayBegin: true) == .waits)
        #expect(calls.follow("reply", from: ":1.1") && !calls.follow("reply", from: ":1.0"))
        #expect(order(&calls) == ["c", "d", "reply"])
    }

    @Test func `waiting calls take up a limited amount of memory, but one may always wait`() {
        var quotas = Quotas()
        quotas.callBytes = 100
        var calls = calls(quotas)
        #expect(calls.take("large", size: 1_000, from: ":1.0", mayBegin: false) == .waits)
        guard case .refused = calls.take("small", size: 1, from: ":1.1", mayBegin: false) else {
            Issue.record("It was not refused.")
            return
        }
        #expect(calls.take("other", size: 100, from: ":1.10", mayBegin: false) == .waits)
        #expect(order(&calls) == ["large", "other"])
        for number in 0..<10 { #expect(calls.take("\(number)", size: 10, from: ":1.0", mayBegin: false) == .waits) }
        #expect(calls.take("more", size: 1, from: ":1.0", mayBegin: false) != .waits)
    }

    @Test func `the bus is asked about an unknown sender once, and few of its calls wait for the reply`() {
        var calls = Calls(Quotas())
        #expect(calls.take("a", size: 1, from: ":1.1", mayBegin: true) == .unknown)
        #expect(calls.take("b", size: 1, from: ":1.1", mayBegin: true) == .waits)
        #expect(calls.take("c", size: 1, from: ":1.2", mayBegin: true) == .unknown)
        #expect(calls.isEmpty && calls.next() == nil)
        for _ in 2..<Calls.callsOfStranger { _ = calls.take("b", size: 1, from: ":1.1", mayBegin: true) }
        #expect(calls.refusal(ofCallsFrom: ":1.1")?.kind == .limitExceeded)
        #expect(calls.refusal(ofCallsFrom: ":1.2") == nil)
        #expect(calls.identify(":1.1", as: 1000).isEmpty)
        #expect(calls.next()?.call == "a" && calls.next()?.call == "b")
        // It has gone.
        #expect(calls.identify(":1.2", as: nil).map(\.call) == ["c"])
        #expect(calls.take("d", size: 1, from: ":1.2", mayBegin: true) == .unknown)
    }

    @Test func `many unknown senders are refused, but large calls do not keep small ones out`() {
        var calls = Calls(Quotas())
        #expect(calls.take("large", size: 16 << 20, from: ":1.0", mayBegin: true) == .unknown)
        #expect(calls.take("large", size: 1 << 20, from: ":1.1", mayBegin: true) != .unknown)
        for number in 2...Calls.callsOfStrangers {
            #expect(calls.take("small", size: 100, from: ":1.\(number)", mayBegin: true) == .unknown)
        }
        #expect(calls.take("small", size: 100, from: ":1.10000", mayBegin: true) != .unknown)
        #expect(calls.identify(":1.0", as: 1000).isEmpty)
        #expect(calls.take("large", size: 8 << 20, from: ":1.10001", mayBegin: true) == .unknown)
    }
}

// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import NotifyCoordinator

extension CallTurns {
    /// How many calls of a user are pending: waiting, or not answered yet.
    fileprivate func pendingCount(of user: UInt32) -> Int { ledger.users[user]?.calls ?? 0 }
}

@Suite struct CallTurnsTests {
    private typealias Calls = CallTurns<String, String>

    /// Turns in which these connections are known: `:1.0` of user 1000, `:1.10` of user 1001, and so on.
    private func calls(_ quotas: Quotas = Quotas()) -> Calls {
        var calls = Calls(quotas)
        for user in 0..<3 {
            for number in 0..<10 {
                calls.know(":1.\(user * 10 + number)", as: Owner(user: 1000 + UInt32(user)))
            }
        }
        return calls
    }

    private func charge(_ sender: String) -> CallCharge {
        CallCharge(sender: sender, caller: Caller(user: 1000), load: CallLoad(size: 1))
    }

    private func load(_ size: Int) -> CallLoad { CallLoad(size: size) }

    private func order(_ calls: inout Calls) -> [String] {
        var order: [String] = []
        while let turn = calls.next() { order.append(turn.call) }
        return order
    }

    @Test func `a call begins at once if no other call waits and there is time`() {
        var calls = calls()
        #expect(calls.take("a", load(1), from: ":1.0", mayBegin: true) == .begin(charge(":1.0")))
        #expect(calls.isEmpty && calls.pendingCount(of: 1000) == 1)
        #expect(calls.take("b", load(1), from: ":1.0", mayBegin: false) == .waits)
        #expect(calls.take("c", load(1), from: ":1.10", mayBegin: true) == .waits)
        #expect(order(&calls) == ["b", "c"] && calls.isEmpty)
        #expect(calls.take("d", load(1), from: ":1.0", mayBegin: true) == .begin(charge(":1.0")))
    }

    @Test func `users take turns, so do a user's connections, and one connection's calls keep their order`() {
        var calls = calls()
        for number in 0..<3 { _ = calls.take("a\(number)", load(1), from: ":1.0", mayBegin: false) }
        for number in 0..<2 { _ = calls.take("b\(number)", load(1), from: ":1.1", mayBegin: false) }
        for number in 0..<2 { _ = calls.take("c\(number)", load(1), from: ":1.10", mayBegin: false) }
        #expect(order(&calls) == ["a0", "c0", "b0", "c1", "a1", "b1", "a2"])
    }

    @Test func `after a thousand calls of one user, another's is the second to be handled`() {
        var calls = calls()
        for number in 0..<1_000 { _ = calls.take("\(number)", load(100), from: ":1.\(number % 10)", mayBegin: false) }
        _ = calls.take("other", load(100), from: ":1.10", mayBegin: true)
        #expect(order(&calls).firstIndex(of: "other") == 1)
    }

    @Test func `a large call waits for every small one, and those after it on its connection wait for it`() {
        var calls = calls()
        let large = load(100_000)
        #expect(calls.take("large", large, from: ":1.0", mayBegin: true) == .waits)
        #expect(calls.take("after", load(1), from: ":1.0", mayBegin: true) == .waits)
        #expect(calls.isEmpty && order(&calls).isEmpty && calls.largeTime == 0)
        // It holds up no other caller.
        #expect(calls.take("other", load(1), from: ":1.1", mayBegin: true) != .waits)
        for number in 0..<3 { _ = calls.take("b\(number)", load(1), from: ":1.10", mayBegin: false) }
        #expect(order(&calls) == ["b0", "b1", "b2"])
        #expect(calls.nextLarge(now: 5)?.call == "large")
        #expect(order(&calls) == ["after"] && calls.largeTime == nil)
    }

    @Test func `an owner's large calls are put off until it has paid for the last one, and none is lost`() {
        var calls = calls()
        let large = load(1 << 20)
        for number in 0..<3 { _ = calls.take("a\(number)", large, from: ":1.\(number)", mayBegin: true) }
        _ = calls.take("other", large, from: ":1.10", mayBegin: true)
        let second: Int64 = 1_000_000_000
        #expect(calls.nextLarge(now: 1)?.call == "a0")
        // Another owner's may begin at once.
        #expect(calls.largeTime == 0 && calls.nextLarge(now: 1)?.call == "other")
        #expect(calls.nextLarge(now: 1)?.call == nil && calls.largeTime == 1 + second)
        #expect(calls.nextLarge(now: second)?.call == nil)
        #expect(calls.nextLarge(now: 1 + second)?.call == "a1")
        #expect(calls.nextLarge(now: 1 + second)?.call == nil && calls.largeTime == 1 + 2 * second)
        #expect(calls.nextLarge(now: 10 * second)?.call == "a2" && calls.largeTime == nil)
    }

    @Test func `in every history each call is handled once, in the order of its connection, within the quotas`() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<80 {
            var quotas = Quotas()
            quotas.calls = 6
            quotas.callBytes = 50
            var calls = Calls(quotas)
            var expected: [String: [String]] = [:]
            var handled: [String: [String]] = [:]
            var underWay: [CallCharge] = []
            var unknown: Set<String> = []
            /// By call.
            var senders: [String: String] = [:]
            // Users 1000 to 1002; the last one's programs are owners by themselves.
            func owner(_ sender: String) -> Owner {
                let number = Int32(sender.utf8.last ?? 0)
                return Owner(user: 1000 + UInt32(number % 3), program: .process(number % 2), agentUser: 1002)
            }
            func identify(_ sender: String, isKnown: Bool) {
                unknown.remove(sender)
                let caller = isKnown ? Caller(owner(sender)) : nil
                for (call, verdict) in calls.identify(sender, as: caller, mayBegin: Bool.random(using: &random)) {
                    switch verdict {
                    case .begin(let charge):
                        underWay.append(charge)
                        handled[sender, default: []].append(call)
                    case .waits: break
                    case .refused: expected[sender]?.removeAll { $0 == call }
                    case .unknown: Issue.record("\(sender) is known")
                    }
                }
            }
            func handleNext() {
                guard let turn = calls.next() else { return }
                let sender = senders[turn.call] ?? ""
                handled[sender, default: []].append(turn.call)
                if let charge = turn.charge {
                    #expect(charge.caller == Caller(owner(sender)))
                    underWay.append(charge)
                }
            }
            for number in 0..<200 {
                let (sender, call) = (":1.\(Int.random(in: 0..<7, using: &random))", "\(number)")
                senders[call] = sender
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<5:
                    let load = CallLoad(
                        size: Int.random(in: 1..<30, using: &random),
                        isCounted: Int.random(in: 0..<4, using: &random) > 0
                    )
                    let isRefused = calls.refusal(from: sender, load, wantsReply: true) != nil
                    let mayBegin = Bool.random(using: &random)
                    let verdict = calls.take(call, load, from: sender, mayBegin: mayBegin)
                    switch verdict {
                    case .begin(let charge):
                        #expect(mayBegin)
                        #expect(charge == CallCharge(sender: sender, caller: Caller(owner(sender)), load: load))
                        underWay.append(charge)
                        handled[sender, default: []].append(call)
                    case .unknown: #expect(unknown.insert(sender).inserted)
                    case .waits: break
                    case .refused:
                        #expect(isRefused)
                        continue
                    }
                    #expect(!isRefused)
                    expected[sender, default: []].append(call)
                case 5: if calls.follow(call, from: sender) { expected[sender, default: []].append(call) }
                case 6:
                    let isKnown = Int.random(in: 0..<4, using: &random) > 0
                    if let sender = unknown.sorted().randomElement(using: &random) {
                        identify(sender, isKnown: isKnown)
                    }
                case 7, 8: handleNext()
                default:
                    if let index = underWay.indices.randomElement(using: &random) {
                        calls.end(underWay.remove(at: index))
                    }
                }
                for user in 1000..<1003 as Range<UInt32> {
                    let own = underWay.filter { $0.caller.user == user && $0.load.isCounted }.count
                    #expect((own...quotas.calls).contains(calls.pendingCount(of: user)))
                }
            }
            for sender in unknown { identify(sender, isKnown: true) }
            while !calls.isEmpty { handleNext() }
            #expect(handled == expected.filter { !$0.value.isEmpty })
            for charge in underWay { calls.end(charge) }
            #expect((1000..<1003).allSatisfy { calls.pendingCount(of: $0) == 0 })
            // Nothing else is remembered of them, either.
            #expect(calls.ledger.users.isEmpty)
        }
    }

    @Test func `calls count until they are over, and those beyond the quota are refused, of this user only`() {
        var quotas = Quotas()
        quotas.calls = 3
        var calls = calls(quotas)
        #expect(calls.take("a", load(1), from: ":1.0", mayBegin: true) == .begin(charge(":1.0")))
        for name in ["b", "c"] { #expect(calls.take(name, load(1), from: ":1.1", mayBegin: false) == .waits) }
        let refusal = Refusal(.limitExceeded, "User 1000 has reached the limit of 3 pending calls.")
        #expect(calls.refusal(from: ":1.2", load(1), wantsReply: true) == refusal)
        #expect(calls.take("d", load(1), from: ":1.2", mayBegin: true) == .refused(refusal))
        #expect(calls.refusal(from: ":1.10", load(1), wantsReply: true) == nil)
        // One that has had its turn is still pending.
        #expect(calls.next()?.call == "b" && calls.refusal(from: ":1.0", load(1), wantsReply: true) == refusal)
        calls.end(charge(":1.1"))
        #expect(calls.refusal(from: ":1.0", load(1), wantsReply: true) == nil)
        // A message that follows a call is no call.
        #expect(calls.take("d", load(1), from: ":1.1", mayBegin: true) == .waits)
        #expect(calls.follow("reply", from: ":1.1") && !calls.follow("reply", from: ":1.0"))
        #expect(order(&calls) == ["c", "d", "reply"])
    }

    /// Two programs of the agent's own user: one with connections `:1.0` to `:1.8`, one with `:1.9`.
    private func programs(_ quotas: Quotas) -> Calls {
        var calls = Calls(quotas)
        for number in 0..<10 {
            let owner = Owner(user: 1000, program: .process(number == 9 ? 2 : 1))
            calls.know(":1.\(number)", as: owner)
        }
        return calls
    }

    @Test func `a program of the agent's own user with many connections delays another by one of its calls`() {
        var calls = programs(Quotas())
        for number in 0..<9 { _ = calls.take("\(number)", load(1), from: ":1.\(number)", mayBegin: false) }
        _ = calls.take("other", load(1), from: ":1.9", mayBegin: false)
        #expect(order(&calls).firstIndex(of: "other") == 1)
    }

    @Test func `a program may have as much pending as it leaves to its user's other programs`() {
        var quotas = Quotas()
        (quotas.calls, quotas.callBytes) = (16, 100_000)
        var calls = programs(quotas)
        for number in 0..<8 {
            #expect(calls.take("\(number)", load(1), from: ":1.\(number)", mayBegin: false) == .waits)
        }
        #expect(
            calls.refusal(from: ":1.0", load(1), wantsReply: true)
                == Refusal(.limitExceeded, "Process 1 has 8 of its user's 16 calls pending.")
        )
        for _ in 0..<4 { #expect(calls.take("other", load(1), from: ":1.9", mayBegin: false) == .waits) }
        #expect(calls.refusal(from: ":1.9", load(1), wantsReply: true) != nil)
        while let turn = calls.next() { if let charge = turn.charge { calls.end(charge) } }
        #expect(calls.pendingCount(of: 1000) == 0)
        // However much memory one takes up, there is room for a small call of another.
        #expect(calls.take("large", load(1_000_000), from: ":1.0", mayBegin: false) == .waits)
        #expect(calls.refusal(from: ":1.1", load(1), wantsReply: true) != nil)
        #expect(calls.refusal(from: ":1.9", load(10_000), wantsReply: true) != nil)
        #expect(calls.take("small", load(2_000), from: ":1.9", mayBegin: false) == .waits)
    }

    @Test func `a connection stays known as long as a call of it is pending, however many come meanwhile`() {
        var calls = Calls(Quotas())
        let owner = Owner(user: 1000)
        for sender in [":1.begun", ":1.waiting", ":1.idle"] { calls.know(sender, as: owner) }
        let verdict = calls.take("begun", load(1), from: ":1.begun", mayBegin: true)
        #expect(calls.take("waiting", load(1), from: ":1.waiting", mayBegin: false) == .waits)
        for number in 0..<(3 * Calls.memory) { calls.know(":1.\(number)", as: Owner(user: 1001)) }
        #expect(calls.owner(of: ":1.begun") == owner && calls.owner(of: ":1.waiting") == owner)
        #expect(calls.owner(of: ":1.idle") == nil)
        #expect(calls.next()?.call == "waiting")
        #expect(calls.owner(of: ":1.waiting") == owner)
        guard case .begin(let charge) = verdict else { return #expect(Bool(false), "it should begin") }
        calls.end(charge)
        for number in 0..<(3 * Calls.memory) { calls.know(":2.\(number)", as: Owner(user: 1001)) }
        #expect(calls.owner(of: ":1.begun") == nil)
    }

    @Test func `waiting calls take up a limited amount of memory, but one may always wait`() {
        var quotas = Quotas()
        quotas.callBytes = 100
        var calls = calls(quotas)
        #expect(calls.take("large", load(1_000), from: ":1.0", mayBegin: false) == .waits)
        #expect(calls.refusal(from: ":1.1", load(1), wantsReply: true)?.kind == .limitExceeded)
        #expect(calls.take("other", load(100), from: ":1.10", mayBegin: false) == .waits)
        // It takes up memory until it is over.
        let large = calls.next()
        #expect(large?.call == "large" && calls.next()?.call == "other")
        #expect(calls.refusal(from: ":1.1", load(1), wantsReply: true)?.kind == .limitExceeded)
        if let charge = large?.charge { calls.end(charge) }
        for number in 0..<10 { #expect(calls.take("\(number)", load(10), from: ":1.0", mayBegin: false) == .waits) }
        #expect(calls.take("more", load(1), from: ":1.0", mayBegin: false) != .waits)
    }

    @Test func `calls that are not counted are limited by their size alone`() {
        var quotas = Quotas()
        (quotas.calls, quotas.callBytes) = (2, 100)
        var calls = calls(quotas)
        for number in 0..<10 {
            let load = CallLoad(size: 10, isCounted: false)
            #expect(calls.take("\(number)", load, from: ":1.0", mayBegin: false) == .waits)
        }
        #expect(calls.pendingCount(of: 1000) == 0)
        #expect(calls.refusal(from: ":1.0", CallLoad(size: 10, isCounted: false), wantsReply: true) != nil)
        while let turn = calls.next() { if let charge = turn.charge { calls.end(charge) } }
        #expect(calls.refusal(from: ":1.0", CallLoad(size: 100, isCounted: false), wantsReply: true) == nil)
    }

    @Test func `the bus is asked about an unknown sender once, and few of its calls wait for the reply`() {
        var calls = Calls(Quotas())
        #expect(calls.take("a", load(1), from: ":1.1", mayBegin: true) == .unknown)
        #expect(calls.take("b", load(1), from: ":1.1", mayBegin: true) == .waits)
        #expect(calls.take("c", load(1), from: ":1.2", mayBegin: true) == .unknown)
        #expect(calls.isEmpty && calls.next() == nil)
        for _ in 2..<Calls.callsOfStranger { _ = calls.take("b", load(1), from: ":1.1", mayBegin: true) }
        #expect(calls.refusal(from: ":1.1", load(1), wantsReply: true)?.kind == .limitExceeded)
        #expect(calls.refusal(from: ":1.2", load(1), wantsReply: true) == nil)
        let first = calls.identify(":1.1", as: Caller(user: 1000), mayBegin: false)
        #expect(first.count == Calls.callsOfStranger && first.allSatisfy { $0.verdict == .waits })
        #expect(calls.next()?.call == "a" && calls.next()?.call == "b")
        // It has gone.
        let second = calls.identify(":1.2", as: nil, mayBegin: true)
        #expect(second.map(\.call) == ["c"] && second.first?.verdict == .refused(.unidentified(":1.2")))
        #expect(calls.take("d", load(1), from: ":1.2", mayBegin: true) == .unknown)
    }

    @Test func `many unknown senders are refused, but large calls do not keep small ones out`() {
        var calls = Calls(Quotas())
        #expect(calls.take("large", load(16 << 20), from: ":1.0", mayBegin: true) == .unknown)
        #expect(calls.take("large", load(1 << 20), from: ":1.1", mayBegin: true) != .unknown)
        for number in 2...Calls.callsOfStrangers {
            #expect(calls.take("small", load(100), from: ":1.\(number)", mayBegin: true) == .unknown)
        }
        #expect(calls.take("small", load(100), from: ":1.10000", mayBegin: true) != .unknown)
        #expect(calls.identify(":1.0", as: Caller(user: 1000), mayBegin: false).map(\.verdict) == [.waits])
        #expect(calls.take("large", load(8 << 20), from: ":1.10001", mayBegin: true) == .unknown)
    }

    @Test func `a sender that could not be identified is asked about again once it has no call pending`() {
        var calls = Calls(Quotas())
        let caller = Caller(Owner(user: 1000), confinement: .unidentified(":1.1"), isUncertain: true)
        #expect(calls.take("a", load(1), from: ":1.1", mayBegin: true) == .unknown)
        #expect(calls.take("b", load(1), from: ":1.1", mayBegin: true) == .waits)
        let charge = CallCharge(sender: ":1.1", caller: caller, load: load(1))
        let verdicts = calls.identify(":1.1", as: caller, mayBegin: true).map(\.verdict)
        #expect(verdicts == [.begin(charge), .begin(charge)])
        calls.end(charge)
        #expect(calls.take("c", load(1), from: ":1.1", mayBegin: true) == .begin(charge))
        calls.end(charge)
        calls.end(charge)
        #expect(calls.take("d", load(1), from: ":1.1", mayBegin: true) == .unknown)
    }

    @Test func `a connection that does not read its answers is refused what it asks, and nothing else`() {
        var calls = calls()
        calls.hasReplied(to: ":1.0", bytes: UnreadAnswers.limit)
        #expect(calls.refusal(from: ":1.0", load(1), wantsReply: true)?.kind == .limitExceeded)
        #expect(calls.refusal(from: ":1.0", load(1), wantsReply: false) == nil && !calls.ignores(":1.0"))
        #expect(calls.refusal(from: ":1.1", load(1), wantsReply: true) == nil)
        calls.hasReplied(to: ":1.0", bytes: UnreadAnswers.silentAt)
        #expect(calls.ignores(":1.0"))
        // The bus does not say what it keeps.
        calls.answers = nil
        #expect(calls.refusal(from: ":1.0", load(1), wantsReply: true) == nil && !calls.ignores(":1.0"))
    }
}

extension CallTurns {
    /// The bus has reported who a connection is that has not called yet.
    fileprivate mutating func know(_ sender: String, as owner: Owner) {
        _ = identify(sender, as: Caller(owner), mayBegin: false)
    }
}

extension CallTurns<String, String>.Turn {
    /// What was passed on.
    fileprivate var call: String {
        switch self {
        case .call(let call, _): call
        case .follower(let follower): follower
        }
    }

    fileprivate var charge: CallCharge? { if case .call(_, let charge) = self { charge } else { nil } }
}

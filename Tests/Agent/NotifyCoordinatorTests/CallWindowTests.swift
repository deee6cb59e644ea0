// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import NotifyCoordinator

/// The order of the agent's calls: users take turns, and one that never answers holds up no other.
@Suite struct CallWindowTests {
    private typealias Window = CallWindow<Int, String>

    /// The number of a call: its user, and which one of the user's it is.
    private func call(_ user: UInt32, _ number: Int) -> Int { Int(user) * 10_000 + number }

    private func fill(_ window: inout Window, user: UInt32, _ count: Int) {
        for number in 0..<count { window.enqueue(call(user, number), "", of: Owner(user: user)) }
    }

    private func takeAll(_ window: inout Window, now: Int64 = 0) -> [Int] {
        var taken: [Int] = []
        while let (call, _) = window.next(now: now) { taken.append(call) }
        return taken
    }

    @Test func `users take turns, and each has a share`() {
        var window = Window()
        fill(&window, user: 1, 250)
        fill(&window, user: 2, 3)
        let taken = takeAll(&window)
        #expect(taken.prefix(6) == [call(1, 0), call(2, 0), call(1, 1), call(2, 1), call(1, 2), call(2, 2)])
        #expect(taken.count == Window.share + 3)
        // One goes on for each that is answered.
        window.hasAnswered(call(1, 0))
        let next = takeAll(&window)
        #expect(next == [call(1, Window.share)])
    }

    @Test func `late replies stay within their user's share, and never take more than the bus allows`() {
        var window = Window()
        for user in 1...100 as ClosedRange<UInt32> { fill(&window, user: user, 250) }
        var now: Int64 = 0
        var count = takeAll(&window, now: now).count
        #expect(count == Window.limit)
        for _ in 0..<100 {
            now += ChangeRequest.limit
            count += takeAll(&window, now: now).count
        }
        #expect(count == Window.totalLimit)

        window = Window()
        fill(&window, user: 1, 250)
        count = takeAll(&window).count
        now = 10 * ChangeRequest.limit
        count += takeAll(&window, now: now).count
        #expect(count == Window.share)
        fill(&window, user: 2, 1)
        let other = takeAll(&window, now: now)
        #expect(other == [call(2, 0)])
        // A late answer is as good as any.
        window.hasAnswered(call(1, 0))
        let next = takeAll(&window, now: now)
        #expect(next == [call(1, Window.share)])
    }

    @Test func `a call that is waiting is made once, with what was to be said last`() {
        var window = Window()
        fill(&window, user: 1, Window.share)
        _ = takeAll(&window)
        window.enqueue(call(1, 99), "first", of: Owner(user: 1))
        window.enqueue(call(1, 99), "second", of: Owner(user: 1))
        window.hasAnswered(call(1, 0))
        let next = window.next(now: 0)
        #expect(next?.content == "second")
        window.hasAnswered(call(1, 1))
        let none = window.next(now: 0) == nil
        #expect(none)
    }

    @Test func `those that come and go leave nothing behind`() {
        var window = Window()
        fill(&window, user: 1, Window.share)
        _ = takeAll(&window)
        for number in 100..<5_000 {
            window.enqueue(call(1, number), "", of: Owner(user: 1))
            if number > 100 { window.forget(call(1, number)) }
        }
        #expect(window.turns.count(of: Owner(user: 1)) < 100)
        for number in 0..<Window.share { window.forget(call(1, number)) }
        let rest = takeAll(&window)
        #expect(rest == [call(1, 100)])
        window.forget(call(1, 100))
        #expect(window.isEmpty)
    }

    @Test func `what waits is tried again when the first reply becomes late`() {
        var window = Window()
        #expect(window.deadline == nil)
        for user in 1...10 as ClosedRange<UInt32> { fill(&window, user: user, 8) }
        _ = takeAll(&window, now: 7)
        #expect(window.deadline == 7 + ChangeRequest.limit)
        _ = takeAll(&window, now: 7 + ChangeRequest.limit)
        #expect(window.deadline == nil)
    }

    @Test func `the programs of the agent's own user answer for themselves, those of others for their user`() {
        let (own, other) = (
            ProcessID(pid: 1, startTime: 1, user: 1_000), ProcessID(pid: 2, startTime: 1, user: 1_001)
        )
        #expect(Owner(own, agentUser: 1_000) == Owner(user: 1_000, program: .process(1)))
        #expect(Owner(other, agentUser: 1_000) == Owner(user: 1_001))
        #expect(Owner(own, agentUser: nil) == Owner(user: 1_000))
    }

    @Test func `a call that is made once more before it was answered counts once`() {
        var window = Window()
        for _ in 0..<2 { window.begin(1, of: Owner(user: 1), now: 0) }
        window.hasAnswered(1)
        #expect(window.isEmpty)
    }

    @Test func `an owner that wants nothing any more leaves the others their turns`() {
        var turns = Turns<Int, Int>()
        for owner in 1...2 { turns.append(10 * owner, of: owner) }
        turns.remove(of: 1) { _ in true }
        #expect(turns.next() == 20 && turns.isEmpty)
    }
}

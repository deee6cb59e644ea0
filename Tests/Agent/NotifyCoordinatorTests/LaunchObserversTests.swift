// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import Testing

@testable import NotifyCoordinator

/// What the connections of a started program hear by themselves, and what they are told.
@Suite struct LaunchObserversTests {
    private let connection = ConnectionID(1)

    @Test func `what a connection may have missed waits for its mark, as far as there is room`() throws {
        var observers = LaunchObservers()
        let wide = Subjects(prefixes: [NamePrefix("com.example.")])
        _ = observers.join(connection, wide, behind: 1, missed: PendingNames(), due: PendingNames())
        for number in 0..<PendingNames.limit {
            let isNoted = observers.note(try NotifyName("com.example.n\(number)"))
            try #require(isNoted)
        }
        #expect(observers.note("com.example.more") == false)
        #expect(observers.note("com.example.n0") == true)
        #expect(observers.note("org.example.a") == false)
        #expect(observers.pass(LaunchMark(connection, number: 0)) == [])
        #expect(observers.pass(LaunchMark(connection, number: 1)).count == PendingNames.limit)
        #expect(observers.note("com.example.n0") == false)
        #expect(observers.hear("com.example.n0"))
    }

    @Test func `what a joining connection was told of it hears no more than once, until it no longer observes it`()
        throws
    {
        var observers = LaunchObservers()
        var missed = PendingNames()
        _ = missed.insert("com.example.a")
        let both = Subjects(names: ["com.example.a", "com.example.b"])
        let told = observers.join(connection, both, behind: 1, missed: missed, due: PendingNames())
        #expect(told == ["com.example.a"])
        #expect(observers.hear("com.example.a") && !observers.hear("com.example.b"))
        let rest = Subjects(names: ["com.example.b"])
        _ = observers.join(connection, rest, behind: nil, missed: PendingNames(), due: PendingNames())
        #expect(!observers.hear("com.example.a") && !observers.hear("com.example.b"))
    }

    @Test func `a connection that hears its names already is told nothing more`() {
        var observers = LaunchObservers()
        let subjects = Subjects(names: ["com.example.a"])
        _ = observers.join(connection, subjects, behind: nil, missed: PendingNames(), due: PendingNames())
        #expect(observers.hear("com.example.a") && !observers.note("com.example.a"))
    }

    @Test func `what a connection was told does not count when it joins anew`() {
        var observers = LaunchObservers()
        var missed = PendingNames()
        _ = missed.insert("com.example.a")
        let (both, rest) = (Subjects(names: ["com.example.a", "com.example.b"]), Subjects(names: ["com.example.b"]))
        _ = observers.join(connection, both, behind: 1, missed: missed, due: PendingNames())
        _ = observers.pass(LaunchMark(connection, number: 1))
        _ = observers.join(connection, rest, behind: nil, missed: PendingNames(), due: PendingNames())
        _ = observers.join(connection, both, behind: 2, missed: PendingNames(), due: PendingNames())
        #expect(!observers.hear("com.example.a") && observers.hear("com.example.b"))
        #expect(observers.note("com.example.a") == true)
    }

    @Test func `nothing is left of a candidate that leaves`() {
        var observers = LaunchObservers()
        let subjects = Subjects(names: ["com.example.a"])
        observers.mayJoin(connection, subjects, behind: 1, missed: PendingNames(), due: PendingNames())
        #expect(observers.leave(connection) == nil)
        #expect(observers == LaunchObservers())
    }

    @Test func `what a candidate hears by itself it is not told when it joins`() {
        var observers = LaunchObservers()
        let subjects = Subjects(names: ["com.example.a"])
        let nothing = PendingNames()
        observers.mayJoin(connection, subjects, behind: 1, missed: nothing, due: nothing)
        #expect(observers.pass(LaunchMark(connection, number: 1)).isEmpty)
        #expect(observers.note("com.example.a") == false)
        #expect(observers.join(connection, subjects, behind: nil, missed: nothing, due: nothing).isEmpty)
    }
}

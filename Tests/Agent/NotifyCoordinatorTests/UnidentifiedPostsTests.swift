// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames
import Testing

/// Posts whose sender is not known yet.
@Suite struct UnidentifiedPostsTests {
    /// With the sender in place of a call.
    private typealias Posts = UnidentifiedPosts<String>

    private let one = Posts.Question(sender: ":1.1", trust: .user)
    private let other = Posts.Question(sender: ":1.2", trust: .root)

    /// `#expect` can't call what changes a value.
    private func check(_ isSo: Bool, at place: SourceLocation = #_sourceLocation) {
        #expect(isSo, sourceLocation: place)
    }

    private func name(_ number: Int) throws -> NotifyName { try NotifyName("com.example.n\(number)") }

    @Test func `the bus is asked once for a sender, and the names come in order, each once`() throws {
        var posts = Posts()
        let isAsked = try [1, 2, 1].map { posts.add(try name($0), one) }
        #expect(isAsked == [true, false, false])
        let names = posts.take(one)
        #expect(try names == [name(1), name(2)])
        check(posts.isEmpty)
        let isAskedAgain = posts.add(try name(1), one)
        #expect(isAskedAgain)
    }

    /// A connection that has registered hears by itself what is posted after the mark. It is told what came before.
    @Test func `a mark comes behind the posts that any sender made before it`() throws {
        var posts = Posts()
        let (first, second) = (LaunchMark(ConnectionID(1), number: 1), LaunchMark(ConnectionID(2), number: 2))
        check(posts.pass(first))
        _ = try posts.add(name(1), one)
        _ = try posts.add(name(2), other)
        check(!posts.pass(first))
        _ = posts.take(one)
        check(posts.takeMarks(behind: one).isEmpty)
        // This has come before any other post that is not identified, and behind one that is.
        check(!posts.pass(second))
        _ = posts.take(other)
        check(posts.takeMarks(behind: other) == [first, second])
        check(posts.takeMarks(behind: other).isEmpty)
        check(posts.pass(first))
        // Of each connection the latest counts, however many there were.
        _ = try posts.add(name(1), one)
        let last = LaunchMark(first.connection, number: 1_000)
        for number in UInt64(3)...last.number { check(!posts.pass(LaunchMark(first.connection, number: number))) }
        _ = posts.take(one)
        check(posts.takeMarks(behind: one) == [last])
    }

    @Test func `a sender's calls wait for its own posts, and only for those`() throws {
        var posts = Posts()
        check(!posts.postpone(":1.1", from: ":1.1"))
        let both = Posts.Question(sender: ":1.1", trust: .root)
        for question in [one, both] { _ = try posts.add(name(1), question) }
        check(posts.postpone(":1.1", from: ":1.1"))
        check(!posts.postpone(":1.2", from: ":1.2"))
        _ = posts.take(one)
        check(posts.takePings(of: ":1.1").isEmpty)
        _ = posts.take(both)
        check(posts.takePings(of: ":1.1").count == 1)
        check(posts.takePings(of: ":1.1").isEmpty)
    }

    @Test func `whatever strangers post meanwhile, what is kept is bounded`() throws {
        var posts = Posts()
        for number in 0..<(Posts.limit * 2) { _ = try posts.add(name(number), one) }
        check(posts.take(one).count == Posts.limit)
        let questions = (0..<8).map { Posts.Question(sender: ":1.\($0)", trust: .user) }
        for question in questions {
            for number in 0..<Posts.limit { _ = try posts.add(name(number), question) }
        }
        let count = questions.map { posts.take($0).count }.reduce(0, +)
        #expect(count == Posts.limitOfAll)
        for _ in 0..<2 {
            _ = try posts.add(name(1), one)
            let calls = (0..<100).filter { _ in posts.postpone(one.sender, from: one.sender) }
            #expect(calls.count == 8)
            _ = posts.take(one)
            check(posts.takePings(of: one.sender).count == 8)
        }
    }
}

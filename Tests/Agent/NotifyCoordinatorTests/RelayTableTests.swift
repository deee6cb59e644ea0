// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import Testing

@testable import NotifyCoordinator

/// What the relay keeps for each program, as values.
@Suite struct RelayTableTests {
    private let process = ProcessID(pid: 1, startTime: 1, user: 0)
    private let other = ProcessID(pid: 2, startTime: 1, user: 0)

    private func name(_ text: String) throws -> NotifyName { try NotifyName(text) }

    private func subjects(_ names: [String]) throws -> Subjects { try Subjects(names: names, prefixes: []) }

    private func subjects(_ names: String..., prefixes: [String] = []) throws -> Subjects {
        try Subjects(names: names, prefixes: prefixes)
    }

    @Test func `a name is heard as long as some program wants it`() throws {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .foreground)
        _ = table.enter("b", of: process, in: .foreground)
        let result1 = try table.add(subjects("x", "y"), to: "a").heard
        #expect(try result1 == subjects("x", "y"))
        let result2 = try table.add(subjects("y", "z"), to: "b").heard
        #expect(try result2 == subjects("z"))
        let result3 = try table.remove(subjects("x", "y", "w"), from: "a").unheard
        #expect(try result3 == subjects("x"))
        let result4 = table.prepare(.background, of: "b").unheard
        #expect(try result4 == (subjects("y", "z")))
        let result5 = table.prepare(.foreground, of: "b").heard
        #expect(try result5 == (subjects("y", "z")))
        let result6 = table.forget("b").unheard
        #expect(try result6 == (subjects("y", "z")))
        let result7 = table.forget("a").unheard.isEmpty
        #expect(result7)
        #expect(table.ruleCount == 0 && table.count == 0 && !table.contains("a"))
    }

    @Test func `nothing is left of an owner without clients once what waited for them has passed`() throws {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .foreground)
        _ = try table.add(subjects("x"), to: "a")
        table.posted(RelayTable.Post(try name("x"), from: ""))
        _ = table.forget("a")
        while table.next() != nil {}
        #expect(table == RelayTable())
    }

    @Test func `what waits for a program by a prefix stays when it observes a name less`() throws {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .suspended)
        _ = try table.add(subjects("x", prefixes: ["com."]), to: "a")
        for text in ["x", "com.y"] { _ = table.hear(RelayTable.Post(try name(text), from: "")) }
        #expect(table.waitingCount(of: "a") == 2)
        _ = try table.remove(subjects("x"), from: "a")
        #expect(table.waitingCount(of: "a") == 1)
    }

    @Test func `what clients with prefixes have not read is known, up to a limit for each owner`() throws {
        var table = RelayTable()
        for (client, state) in [("a", LifecycleState.foreground), ("b", .suspended), ("c", .background)] {
            _ = table.enter(client, of: process, in: state)
            _ = try table.add(subjects(prefixes: ["x."]), to: client)
        }
        _ = table.enter("d", of: other, in: .foreground)
        _ = try table.add(subjects("x.n2", prefixes: ["y."]), to: "d")
        _ = table.enter("e", of: other, in: .foreground)
        _ = try table.add(subjects("x.n2"), to: "e")
        for text in ["x.n1", "x.n2"] { _ = table.hear(RelayTable.Post(try name(text), from: "")) }
        _ = table.takeBatch(for: "a", limit: 1)
        table.posted(RelayTable.Post(try name("x.n3"), from: ""))
        let all: [NotifyName] = ["x.n1", "x.n2", "x.n3"]
        #expect(table.unreadNames() == ["a": all, "b": all, "d": ["x.n2"]])
        #expect(table.unreadNames(limit: 5).values.map(\.count).reduce(0, +) == 6)
        _ = table.batchIsRead(by: "a")
        #expect(table.unreadNames()["a"] == ["x.n2", "x.n3"])
    }

    @Test func `names that were found for a client in the background are dropped`() throws {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .background)
        _ = try table.add(subjects("x"), to: "a")
        table.keep(["x"], for: "a")
        _ = table.prepare(.foreground, of: "a")
        table.confirm(.foreground, of: "a")
        #expect(!table.hasBatch(for: "a"))
        table.keep(["x"], for: "a")
        #expect(table.hasBatch(for: "a"))
    }

    @Test func `memory is given back when little waits of what once did, and no line holds anything`() throws {
        var table = RelayTable()
        for client in ["a", "b"] {
            _ = table.enter(client, of: process, in: .foreground)
            _ = try table.add(subjects(prefixes: ["x."]), to: client)
        }
        for number in 0..<3_000 { table.posted(RelayTable.Post(try name("x.n\(number)"), from: "")) }
        #expect(!table.hasShrunk)
        while table.next() != nil {}
        #expect(!table.hasWork && !table.hasShrunk)
        _ = table.takeBatch(for: "a", limit: 3_000)
        #expect(table.forget("b").waiters.isEmpty && table.hasShrunk)
        table.posted(RelayTable.Post(try name("x"), from: ""))
        table.posted(RelayTable.Post(try name("x.y"), from: ""))
        #expect(table.hasWork && !table.hasShrunk)
        while table.next() != nil {}
        #expect(table.hasShrunk)
        table.memoryIsGivenBack()
        #expect(!table.hasShrunk)
    }

    @Test func `memory is given back each time that all posts have been read`() throws {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .foreground)
        _ = try table.add(subjects(prefixes: ["x."]), to: "a")
        for _ in 0..<2 {
            for number in 0..<3_000 { _ = table.hear(RelayTable.Post(try name("x.n\(number)"), from: "")) }
            _ = table.takeBatch(for: "a", limit: 3_000)
            _ = table.batchIsRead(by: "a")
            #expect(table.hasShrunk)
            table.memoryIsGivenBack()
        }
    }

    @Test func `names that wait may take up all of the room`() throws {
        // Each takes its length and 64 bytes.
        var table = RelayTable(room: 2 * (4 + 64))
        _ = table.enter("a", of: process, in: .foreground)
        _ = try table.add(subjects(prefixes: ["x."]), to: "a")
        for text in ["x.n1", "x.n2", "x.n3"] { _ = table.hear(RelayTable.Post(try name(text), from: "")) }
        #expect(table.waitingCount(of: "a") == 2 && table.droppedCount(of: "a") == 1)
    }

    @Test func `one batch is sent at a time, and waiting callers are answered once it was read`() throws {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .foreground)
        _ = try table.add(subjects("x", prefixes: ["x", ""]), to: "a")
        for _ in 0..<3 { _ = table.hear(RelayTable.Post(try name("x"), from: ":1.1")) }
        let result8 = table.takeBatch(for: "a", limit: 2)?.count
        #expect(result8 == 2)
        let result9 = table.takeBatch(for: "a", limit: 2)
        #expect(result9 == nil)
        let result10 = table.wait(1, for: "a")
        #expect(result10 == 1)
        // Callers that wait for the same posts share the number.
        let another = table.wait(2, for: "a")
        #expect(another == 1)
        let result11 = table.batchIsRead(by: "a")
        #expect(result11 == [])
        let result12 = table.takeBatch(for: "a", limit: 2)?.count
        #expect(result12 == 1)
        // A refused batch is passed on again.
        table.batchWasRefused(by: "a")
        let result13 = table.takeBatch(for: "a", limit: 2)?.count
        #expect(result13 == 1)
        let result14 = table.batchIsRead(by: "a")
        #expect(result14 == [1])
        let result15 = table.wait(3, for: "a")
        #expect(result15 == nil)
    }

    @Test func `what a client has not accepted is dropped if it was in the background since, or has ended it`() throws {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .foreground)
        _ = try table.add(subjects("x"), to: "a")
        for isForLong in [true, false] {
            _ = table.hear(RelayTable.Post(try name("x"), from: ":1.1"))
            #expect(table.takeBatch(for: "a", limit: 2)?.count == 1)
            _ = table.prepare(.background, of: "a")
            if isForLong { table.batchWasRefused(by: "a") }
            _ = table.prepare(.foreground, of: "a")
            if !isForLong { table.batchWasRefused(by: "a") }
            table.confirm(.foreground, of: "a")
            #expect(table.takeBatch(for: "a", limit: 2) == nil)
        }
        _ = table.hear(RelayTable.Post(try name("x"), from: ":1.1"))
        #expect(table.takeBatch(for: "a", limit: 2)?.count == 1)
        _ = table.remove(try subjects("x"), from: "a")
        table.batchWasRefused(by: "a")
        #expect(table.takeBatch(for: "a", limit: 2) == nil)
    }

    @Test func `no program waits for posts that became one or are no longer wanted`() throws {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .foreground)
        _ = try table.add(subjects("x", "y", "z"), to: "a")
        func post(_ text: String) throws { _ = table.hear(RelayTable.Post(try name(text), from: ":1.1")) }
        for text in ["x", "x", "x"] { try post(text) }
        _ = table.prepare(.suspended, of: "a")
        table.confirm(.suspended, of: "a")
        _ = table.prepare(.foreground, of: "a")
        table.confirm(.foreground, of: "a")
        let batch = table.takeBatch(for: "a", limit: 10)?.count
        #expect(batch == 1)
        let first = table.wait(1, for: "a")
        #expect(first == 1)
        let due = table.batchIsRead(by: "a")
        #expect(due == [1])

        for text in ["x", "y", "x", "z", "y"] { try post(text) }
        _ = table.takeBatch(for: "a", limit: 1)
        // This one waits for "x", "y" and "x", and the next one for "z" and "y" as well.
        let (second, third) = (table.hear(RelayTable.Post(try name("w"), from: "")).isEmpty, table.wait(2, for: "a"))
        #expect(second && third == 2)
        let none = try table.remove(subjects("y"), from: "a").waiters
        #expect(none == [])
        let noneYet = table.batchIsRead(by: "a")
        #expect(noneYet == [])
        _ = table.takeBatch(for: "a", limit: 10)
        let all = table.batchIsRead(by: "a")
        #expect(all == [2])

        try post("y")
        let nothing = table.wait(3, for: "a")
        #expect(nothing == nil, "y is not observed")
        try post("x")
        let last = table.wait(4, for: "a")
        #expect(last == 4)
        let over = try table.remove(subjects("x"), from: "a").waiters
        #expect(over == [4])
    }

    @Test func `a program that waits is not told early because a later post is no longer wanted`() throws {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .foreground)
        _ = try table.add(subjects("x", "y"), to: "a")
        for text in ["x", "x"] { _ = table.hear(RelayTable.Post(try name(text), from: ":1.1")) }
        _ = table.wait(1, for: "a")
        for _ in 0..<5 { _ = table.hear(RelayTable.Post(try name("y"), from: ":1.1")) }
        let early = try table.remove(subjects("y"), from: "a").waiters
        #expect(early == [])
        for expected in [[], [1]] {
            _ = table.takeBatch(for: "a", limit: 1)
            let due = table.batchIsRead(by: "a")
            #expect(due == expected)
        }
    }

    @Test func `each of many connections with equal and nested prefixes hears a post once`() throws {
        var table = RelayTable()
        let clients = (0..<300).map { ":1.\($0)" }
        for client in clients {
            _ = table.enter(client, of: process, in: .foreground)
            _ = try table.add(subjects("com.example.a", prefixes: ["", "com.", "com.example."]), to: client)
        }
        for text in ["com.example.a", "com.example.b"] {
            let all = table.hear(RelayTable.Post(try name(text), from: ":1.1"))
            #expect(all == Set(clients))
        }
        for client in clients {
            let batch = table.takeBatch(for: client, limit: 10)?.map(\.name.string)
            #expect(batch == ["com.example.a", "com.example.b"])
        }
        for client in clients { _ = table.forget(client) }
        #expect(table.ruleCount == 0)
    }

    @Test func `a post waits once for each owner, whose clients have it when it is their owner's turn`() throws {
        var table = RelayTable()
        let crowd = (0..<100).map { ":1.\($0)" }
        for client in crowd { _ = table.enter(client, of: process, in: .foreground) }
        _ = table.enter("b", of: other, in: .foreground)
        for client in crowd + ["b"] { _ = try table.add(subjects("com.a", prefixes: ["com.", ""]), to: client) }
        for number in 0..<3 { table.posted(RelayTable.Post(try name("com.n\(number)"), from: "")) }
        table.posted(RelayTable.Post(try name("com.a"), from: ""))
        // Nothing has been done yet for any of the many.
        #expect(crowd.allSatisfy { table.waitingCount(of: $0) == 0 })
        var steps: [Set<String>] = []
        while case .queued(let names)? = table.next() { steps.append(names) }
        #expect(steps.count == 8)
        for pair in stride(from: 0, to: 8, by: 2) {
            #expect(Set([steps[pair].count, steps[pair + 1].count]) == [1, 100])
        }
        for client in crowd + ["b"] {
            let batch = table.takeBatch(for: client, limit: 10)?.map(\.name.string)
            #expect(batch == ["com.n0", "com.n1", "com.n2", "com.a"])
        }
        #expect(!table.hasWork)
    }

    @Test func `what follows posts comes after them, and no later post is put before it`() throws {
        var table = RelayTable()
        for client in ["a", "b"] { _ = table.enter(client, of: process, in: client == "a" ? .foreground : .background) }
        for client in ["a", "b"] { _ = try table.add(subjects("x"), to: client) }
        let post = RelayTable.Post(try name("x"), from: "")
        #expect(table.follow(1, for: "b") == false, "there is nothing before it")
        // As many as are coalesced.
        for _ in 0..<5_000 { table.posted(post) }
        for number in 2...3 {
            let follows = table.follow(number, for: "b")
            #expect(follows)
        }
        table.posted(post)
        var heard = 0
        while let step = table.next(), step != .follower(2) {
            #expect(step == .queued(["a"]))
            heard += 1
        }
        #expect(heard == 4_096)
        _ = table.prepare(.foreground, of: "b")
        let (third, last, none) = (table.next(), table.next(), table.next())
        #expect(third == .follower(3) && last == .queued(["a", "b"]) && none == nil)
        // Followers of posts are still due when everybody has left.
        table.posted(post)
        _ = table.follow(4, for: "b")
        for client in ["a", "b"] { _ = table.forget(client) }
        let (nobody, follower) = (table.next(), table.next())
        #expect(nobody == .queued([]) && follower == .follower(4) && !table.hasWork)
    }

    @Test func `where a line has no room, names that are observed in full are kept, and every loss is counted`() throws
    {
        var table = RelayTable(room: 1_000)
        for (client, process) in [("a", process), ("b", other)] { _ = table.enter(client, of: process, in: .suspended) }
        _ = try table.add(subjects("last", prefixes: [""]), to: "a")
        _ = try table.add(subjects(prefixes: ["n.1"]), to: "b")
        for number in 0..<100 { table.posted(RelayTable.Post(try name("n.\(number)"), from: "")) }
        for _ in 0..<3 { table.posted(RelayTable.Post(try name("last"), from: "")) }
        let (lost, none) = (table.droppedCount(of: "a"), table.droppedCount(of: "b"))
        #expect(lost > 80 && none == 0)
        // A client that comes later has lost nothing.
        _ = table.enter("c", of: process, in: .foreground)
        #expect(table.droppedCount(of: "c") == 0)
        while table.next() != nil {}
        #expect(table.waitingCount(of: "a") == 101 - Int(lost) && table.waitingCount(of: "b") == 11)
        #expect(table.droppedCount(of: "a") == lost)
    }

    @Test func `a rule that the bus refuses fails its own connection, and no other that waits`() throws {
        var rules = RuleQueue<String, NotifyBusError>()
        let error = NotifyBusError(.failed, "refused")
        func settled(_ number: Int) -> [String] {
            rules.settle(number).map { $0.failure == nil ? $0.waiter : "\($0.waiter) failed" }
        }
        let (first, second) = (rules.begin(), rules.begin())
        let waits = [rules.wait("a", of: ":1.1"), rules.wait("b", of: ":1.2")]
        let third = rules.begin()
        let waitsToo = rules.wait("c", of: ":1.3")
        #expect(waits == [true, true] && waitsToo)
        rules.fail(":1.1", error)
        let none = settled(second)
        #expect(none == [])
        let two = settled(first)
        #expect(two == ["a failed", "b"])
        let one = settled(third)
        #expect(one == ["c"])
        let nothing = rules.wait("d", of: ":1.1")
        #expect(!nothing)
    }

    @Test func `while suspended each name is kept once, with its poster if there was only one`() throws {
        var queue = CoalescingQueue<RelayTable.Post>()
        queue.keepEachOnce(true)
        for sender in [":1.1", ":1.2"] { _ = queue.enqueue(RelayTable.Post(try name("x"), from: sender)) }
        _ = queue.enqueue(RelayTable.Post(try name("y"), from: ":1.1"))
        let result16 = queue.take(10)
        #expect(try result16 == [RelayTable.Post(name("x"), from: ""), RelayTable.Post(name("y"), from: ":1.1")])
        #expect(queue.isEmpty)
    }

    @Test func `4,096 posts are queued individually, then each name once`() throws {
        var queue = CoalescingQueue<RelayTable.Post>()
        let post = RelayTable.Post(try name("x"), from: ":1.1")
        for _ in 0..<10_000 { _ = queue.enqueue(post) }
        #expect(queue.count == 4_096)
        let result17 = try queue.enqueue(RelayTable.Post(name("y"), from: ":1.1"))
        #expect(result17 == .queued)
        let result18 = try queue.enqueue(RelayTable.Post(name("y"), from: ":1.1"))
        #expect(result18 == .coalesced)
        let result19 = queue.take(256).count
        #expect(result19 == 256)
        #expect(queue.count == 4_096 + 1 - 256)
        for number in 0..<65_536 + 10 {
            _ = queue.enqueue(RelayTable.Post(try name("z.\(number)"), from: ":1.1"))
        }
        #expect(queue.count == 65_536)
        while !queue.isEmpty { _ = queue.take(256) }
        let result20 = queue.enqueue(post)
        #expect(result20 == .queued)
    }

    @Test func `a name that stands for the posts of several keeps no poster, however short the queue has become`()
        throws
    {
        var queue = CoalescingQueue<RelayTable.Post>()
        let last = try name("last")
        for number in 0..<4_096 - 1 {
            _ = queue.enqueue(RelayTable.Post(try name("n\(number)"), from: ":1.1"))
        }
        _ = queue.enqueue(RelayTable.Post(last, from: ":1.1"))
        let outcome = queue.enqueue(RelayTable.Post(last, from: ":1.2"))
        #expect(outcome == .coalesced)
        while queue.count > 1 { _ = queue.take(min(256, queue.count - 1)) }
        let taken = queue.take(1)
        #expect(taken == [RelayTable.Post(last, from: "")])
    }

    @Test func `names that only a prefix matches are limited for each sandbox; observed names are not`() throws {
        var table = RelayTable(room: 1_000)
        _ = table.enter("a", of: process, in: .suspended)
        _ = table.enter("b", of: other, in: .suspended)
        _ = try table.add(subjects("last", prefixes: [""]), to: "a")
        _ = try table.add(subjects(prefixes: [""]), to: "b")
        for number in 0..<100 { _ = table.hear(RelayTable.Post(try name("n.\(number)"), from: "")) }
        _ = table.hear(RelayTable.Post(try name("last"), from: ""))
        #expect(table.waitingCount(of: "a") < 20)
        #expect(table.droppedCount(of: "a") > 80)
        _ = table.prepare(.foreground, of: "a")
        table.confirm(.foreground, of: "a")
        let result21 = table.takeBatch(for: "a", limit: 256)?.last?.name
        #expect(try result21 == (name("last")))
        _ = table.batchIsRead(by: "a")
        // There is room again, and for the other one there always was.
        let result22 = try table.hear(RelayTable.Post(name("m"), from: ""))
        #expect(result22 == ["a", "b"])
        let result23 = table.takeBatch(for: "a", limit: 256)?.count
        #expect(result23 == 1)
        #expect(table.waitingCount(of: "b") > 5)
    }

    @Test func `what a client has been passed makes room for more, also while others wait`() throws {
        var table = RelayTable(room: 1_000)
        _ = table.enter("a", of: process, in: .foreground)
        _ = try table.add(subjects(prefixes: [""]), to: "a")
        for number in 0..<5 { _ = table.hear(RelayTable.Post(try name("n.\(number)"), from: "")) }
        for number in 5..<500 {
            let count = table.takeBatch(for: "a", limit: 1)?.count
            #expect(count == 1)
            if number % 2 == 0 {
                table.batchWasRefused(by: "a")
                _ = table.takeBatch(for: "a", limit: 1)
            }
            _ = table.batchIsRead(by: "a")
            _ = table.hear(RelayTable.Post(try name("n.\(number)"), from: ""))
        }
        #expect(table.waitingCount(of: "a") == 5 && table.droppedCount(of: "a") == 0)
        // Coalesced posts don't count twice, and posts that are no longer wanted don't count for ever.
        for number in 500..<560 {
            for _ in 0..<20 { _ = table.hear(RelayTable.Post(try name("n.\(number % 5)"), from: "")) }
            _ = table.prepare(.suspended, of: "a")
            _ = table.prepare(.foreground, of: "a")
            _ = try table.remove(subjects(prefixes: [""]), from: "a")
            _ = try table.add(subjects(prefixes: [""]), to: "a")
        }
        let before = table.droppedCount(of: "a")
        for number in 0..<5 { _ = table.hear(RelayTable.Post(try name("last.\(number)"), from: "")) }
        #expect(table.waitingCount(of: "a") == 5 && table.droppedCount(of: "a") == before)
    }

    @Test func `an application that the configuration limits hears only its prefixes`() throws {
        var rules = RelayRules()
        rules.limits["org.example.A"] = [NamePrefix("com.example."), NamePrefix("org.example.A.")]
        func refusal(_ subjects: Subjects, _ application: String) -> String? {
            rules.refusal(of: subjects, to: application)
        }
        let limit = "The agent's configuration does not let org.example.A hear "
        #expect(refusal(try subjects("com.example.a", prefixes: ["org.example.A.x"]), "org.example.A") == nil)
        #expect(refusal(try subjects("com.example"), "org.example.A") == limit + "'com.example'.")
        #expect(refusal(try subjects(prefixes: ["com."]), "org.example.A") == limit + "'com.*'.")
        #expect(refusal(try subjects("anything", prefixes: [""]), "org.example.B") == nil)
        #expect(
            refusal(try subjects("a", "org.notifybus.session.focus"), "")
                == "Programs in a sandbox may not hear 'org.notifybus.session.focus'."
        )
    }

    @Test func `many names of a client are heard by a few common prefixes, each part in place before the last goes`()
        throws
    {
        var table = RelayTable()
        _ = table.enter("a", of: process, in: .foreground)
        /// What the bus has been asked for.
        var heard = Subjects()
        func isHeard(_ name: String) -> Bool { (try? NotifyName(name)).map(heard.contains) ?? false }
        var observed: Set<String> = []
        for part in 0..<3 {
            let names = (0..<50).map { "com.example.part\(part).n\($0)" }
            let change = try table.add(subjects(names), to: "a")
            heard.formUnion(change.heard)
            // Nothing goes before that is in place.
            observed.formUnion(names)
            #expect(observed.allSatisfy(isHeard))
            heard.subtract(table.release(change.replaced))
            #expect(observed.allSatisfy(isHeard))
        }
        #expect(heard.prefixes.count <= NameCover.prefixCount && heard.names.count <= NameCover.limit)
        #expect(table.ruleCount == heard.names.count + heard.prefixes.count && !heard.prefixes.isEmpty)
        // Exactly what it observes is passed on.
        let strange: NotifyName = "com.example.part1.n1.more"
        #expect(heard.contains(strange))
        #expect(table.hear(RelayTable.Post(strange, from: ":1.9")).isEmpty)
        let own: NotifyName = "com.example.part1.n1"
        #expect(table.hear(RelayTable.Post(own, from: ":1.9")) == ["a"])
        for part in 0..<3 {
            let names = (0..<50).map { "com.example.part\(part).n\($0)" }
            let change = try table.remove(subjects(Array(names.dropFirst(part == 2 ? 30 : 0))), from: "a")
            observed.subtract(names.dropFirst(part == 2 ? 30 : 0))
            heard.formUnion(change.heard)
            heard.subtract(change.unheard)
            #expect(observed.allSatisfy(isHeard))
            heard.subtract(table.release(change.replaced))
            #expect(observed.allSatisfy(isHeard))
        }
        // Now they are few.
        #expect(heard.names.count == 30 && heard.prefixes.isEmpty)
        heard.subtract(table.forget("a").unheard)
        #expect(heard.isEmpty && table.ruleCount == 0)
    }

    @Test func `a name takes no rule if a common prefix matches it, and leaves none when it is given up`() throws {
        var cover = NameCover()
        _ = cover.add(["com.example.a", "com.example.b"])
        #expect(cover.remove(["com.example.a"], leaving: ["com.example.b"]).given == Subjects(names: ["com.example.a"]))
        #expect(cover.rules == Subjects(names: ["com.example.b"]))
        _ = cover.add(Set(try (0..<NameCover.limit).map { try name("com.example.n\($0)") }))
        let rules = cover.rules
        let prefix = try #require(rules.prefixes.first)
        #expect(cover.add([try name(prefix.string + "x")]).asked.isEmpty && cover.rules == rules)
    }

    @Test func `what many names have in common is as long as possible, and whole characters`() {
        let names = (0..<60_000).map { "com.example.flood.n\($0)" }
        let prefixes = NameCover.commonPrefixes(of: names + ["org.other"])
        #expect(prefixes.count <= NameCover.prefixCount && prefixes.contains(NamePrefix("org.other")))
        #expect(prefixes.allSatisfy { $0.string == "org.other" || $0.string.hasPrefix("com.example.flood.n") })
        let letters = (0..<NameCover.prefixCount).map { String(UnicodeScalar(UInt8(65 + $0))) }
        let umlauts = ["\u{e4}b", "\u{e5}b"] + letters
        #expect(NameCover.commonPrefixes(of: umlauts).contains(NamePrefix("")))
        #expect(NameCover.commonPrefixes(of: ["com.example.only"]) == [NamePrefix("com.example.only")])
    }

    @Test func `a rule that the bus refuses costs its clients what it stands for, and nothing else`() throws {
        var table = RelayTable()
        for client in ["a", "b"] { _ = table.enter(client, of: process, in: .foreground) }
        let many = (0..<100).map { "com.example.many.n\($0)" }
        let change = try table.add(subjects(many), to: "a")
        _ = table.release(change.replaced)
        _ = try table.add(subjects("com.example.many.n1"), to: "b")
        let refused = table.refuse(Subjects(prefixes: Set(change.heard.prefixes.prefix(1))))
        // Rules that are no longer needed are given up, and only the refused one is on no bus.
        #expect(refused.clients == ["a"] && refused.unheard == change.heard)
        #expect(table.subjects(of: "a") == Subjects())
        let own: NotifyName = "com.example.many.n1"
        #expect(table.hear(RelayTable.Post(own, from: ":1.9")) == ["b"])
    }

    @Test func `the relay knows which programs hear some names, and which of these are heard`() throws {
        var table = RelayTable()
        for client in ["a", "b", "c"] { _ = table.enter(client, of: process, in: .foreground) }
        _ = try table.add(subjects("x", prefixes: ["com."]), to: "a")
        _ = try table.add(subjects("y"), to: "b")
        _ = try table.add(subjects("x"), to: "c")
        let some = try subjects("x", "w", prefixes: ["com.", "org."])
        #expect(try table.needed(among: some) == subjects("x", prefixes: ["com."]))
        let refused = try table.refuse(subjects("x", "w"))
        #expect(try refused.clients == ["a", "c"] && refused.unheard == subjects("x"))
        #expect(try table.needed(among: some) == subjects(prefixes: ["com."]))
    }
}

extension RelayTable {
    fileprivate mutating func enter(_ name: String, of process: ProcessID, in state: LifecycleState) -> Bool {
        enter(name, of: process, Owner(process, agentUser: process.user), in: state)
    }

    /// A post arrives, and is queued at once.
    ///
    /// - Returns: whom it is for.
    fileprivate mutating func hear(_ post: Post) -> Set<String> {
        posted(post)
        var all: Set<String> = []
        while case .queued(let names)? = next() { all.formUnion(names) }
        return all
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

@Suite struct QuotaTests {
    private func names(_ count: Int, _ stem: String = "com.example") -> [String] { (0..<count).map { "\(stem).\($0)" } }

    @Test func `beyond each quota a call is refused with a sentence, and other users are still served`() throws {
        var quotas = Quotas()
        quotas.connections = 3
        quotas.names = 100
        quotas.prefixes = 10
        quotas.bytes = 6_700
        var world = World(quotas)
        let process = World.process(11)
        let first = try world.register(":1.1", process, names(80))
        #expect(world.answers[first] != nil)
        for (number, statement) in [(names(30), []), ([], names(11)), (["x" + String(repeating: "y", count: 500)], [])]
            .enumerated()
        {
            let call = try world.register(":1.\(number + 10)", process, statement.0, prefixes: statement.1)
            #expect(world.refusals[call]?.kind == .limitExceeded)
        }
        let call = world.call()
        world.send(.addNames(call, from: ":1.1", try Subjects(names: names(30, "org.example"), prefixes: [])))
        #expect(
            world.refusals[call]?.message
                == "User 1000 has reached the limit of 100 names observed by all its connections together."
        )
        let later = [
            try world.register(":1.4", process), try world.register(":1.5", process),
            try world.register(":1.6", process), try world.register(":1.7", World.process(12, user: 1001), names(80)),
        ]
        #expect(later.map { world.answers[$0] != nil } == [true, true, false, true])
        #expect(world.refusals[later[2]]?.kind == .limitExceeded)
    }

    @Test func `an application in a sandbox may observe so much in all its connections, and leaves others theirs`()
        throws
    {
        var quotas = Quotas()
        (quotas.sandboxNames, quotas.sandboxPrefixes) = (100, 10)
        var world = World(quotas)
        func register(
            _ name: String,
            _ pid: Int32,
            _ count: Int,
            prefixes: Int = 0,
            application: String = "org.example.A"
        ) throws -> CallID {
            try world.register(
                name,
                World.process(pid),
                names(count),
                prefixes: (0..<prefixes).map { "p\($0)." },
                application: application,
                isRelayed: true
            )
        }
        let parts = [
            try register(":1.1", 11, 40), try register(":1.2", 12, 60), try register(":1.3", 13, 1),
            try register(":1.4", 13, 0, prefixes: 10), try register(":1.5", 13, 0, prefixes: 1),
        ]
        #expect(parts.map { world.refusals[$0] == nil } == [true, true, false, true, false])
        #expect(
            world.refusals[parts[2]]?.message
                == "org.example.A is in a sandbox, and can observe at most 100 names and 10 prefixes in all its "
                + "connections together."
        )
        let more = world.call()
        world.send(.addNames(more, from: ":1.1", try Subjects(names: ["org.example"], prefixes: [])))
        #expect(world.refusals[more]?.kind == .limitExceeded)
        // Another one has as much, and a program outside of any has more.
        let others = [
            try register(":1.6", 14, 100, application: "org.example.B"), try register(":1.7", 15, 100, application: ""),
            try world.register(":1.8", World.process(16), names(300), application: "org.example.A"),
        ]
        #expect(others.allSatisfy { world.answers[$0] != nil })
        // Names that are no longer observed make room.
        world.send(.removeNames(world.call(), from: ":1.1", try Subjects(names: names(10), prefixes: [])))
        let last = world.call()
        world.send(.addNames(last, from: ":1.2", try Subjects(names: names(10, "org.example"), prefixes: [])))
        #expect(world.refusals[last] == nil)
        for id in world.coordinator.list.map(\.id) { world.send(.connectionEnded(id)) }
        #expect(world.coordinator.ledger.sandboxes.isEmpty && world.coordinator.ledger.accounts.isEmpty)
    }

    @Test func `a connection that replaces another one needs no place of its own`() throws {
        var quotas = Quotas()
        quotas.connections = 1
        var world = World(quotas)
        _ = try world.register(":1.1", World.process(11), names(1))
        let next = try world.register(":1.2", World.process(11), names(1)) { $0.previous = ":1.1" }
        #expect(world.answers[next] != nil)
        let more = try world.register(":1.3", World.process(11), names(1))
        #expect(world.refusals[more]?.kind == .limitExceeded)
    }

    @Test func `when a connection leaves, its share of every quota is free again`() throws {
        var random = SeededGenerator(seed: 2)
        for _ in 0..<100 {
            var world = World()
            for number in 0..<6 {
                _ = try world.register(
                    ":1.\(number)",
                    World.process(Int32(10 + number % 3)),
                    names(Int.random(in: 0..<20, using: &random)),
                    prefixes: Bool.random(using: &random) ? ["com."] : []
                )
                _ = try world.set(":1.\(number)", .suspended)
                for _ in 0..<Int.random(in: 0..<4, using: &random) { world.step(using: &random) }
                world.send(.posted(try NotifyName("com.example.\(number)")))
            }
            let call = world.call()
            world.send(.removeNames(call, from: ":1.1", try Subjects(names: names(5), prefixes: [])))
            _ = try world.register(":1.7", World.process(10), names(3)) { $0.previous = ":1.0" }
            for id in world.coordinator.list.map(\.id).shuffled(using: &random) {
                world.send(.connectionEnded(id))
                world.step(using: &random)
            }
            world.settle(using: &random)
            #expect(world.coordinator.ledger[1000].isEmpty)
            #expect(world.coordinator.calls.isEmpty && world.coordinator.totals.held == 0)
            #expect(world.rules.isEmpty && world.prefixRules.isEmpty)
        }
    }

    @Test func `pending names take no more memory than the quota allows`() throws {
        var quotas = Quotas()
        quotas.pendingBytes = 2 * Ledger.cost("com.example.0")
        var world = World(quotas)
        _ = try world.register(":1.1", World.process(11), [], prefixes: [""])
        _ = try world.set(":1.1", .suspended)
        world.settle()
        for name in names(5) { world.send(.posted(try NotifyName(name))) }
        let entry = try #require(world.coordinator.list.first)
        #expect(entry.pending == 2 && entry.dropped == 3)
    }

    @Test func `memory is given back once after many names have gone`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), names(100))
        _ = try world.register(":1.2", World.process(12), names(10_000))
        #expect(world.memoryReleases == 0)
        world.send(.connectionEnded(try #require(world.coordinator.id(of: ":1.2"))))
        #expect(world.memoryReleases == 1)
        world.send(.connectionEnded(try #require(world.coordinator.id(of: ":1.1"))))
        #expect(world.memoryReleases == 1)
    }

    @Test func `names beyond the limit of pending names are counted as dropped`() throws {
        var quotas = Quotas()
        quotas.pendingNames = 10
        var world = World(quotas)
        _ = try world.register(":1.1", World.process(11), [], prefixes: [""])
        _ = try world.set(":1.1", .suspended)
        world.settle()
        for name in names(15) { world.send(.posted(try NotifyName(name))) }
        let entry = try #require(world.coordinator.list.first)
        #expect(entry.pending == 10 && entry.dropped == 5)
        // Names that it has dropped itself are counted as well, and do not replace this.
        _ = try world.set(":1.1", .background)
        world.send(.told(entry.id, .done(dropped: 3, isHoldingBack: false)))
        world.settle()
        #expect(world.coordinator.list.first?.dropped == 8)
    }

    @Test func `nothing is left of a user whose connections have gone`() throws {
        var ledger = Ledger(Quotas())
        let subjects = try Subjects(names: names(1), prefixes: ["com."])
        ledger.connectionCame(of: 1)
        try ledger.observe(subjects, by: Ledger.Holder(user: 1))
        ledger.observeLess(subjects, by: Ledger.Holder(user: 1))
        ledger.connectionWent(of: 1)
        #expect(ledger.accounts.isEmpty)
    }

    @Test func `what is pending counts no longer once it is dropped`() throws {
        var world = World()
        _ = try world.register(":1.1", World.process(11), names(2))
        _ = try world.set(":1.1", .suspended)
        world.settle()
        for name in names(2) { world.send(.posted(try NotifyName(name))) }
        #expect(world.coordinator.ledger[1_000].pendingNames == 2)
        world.send(.removeNames(world.call(), from: ":1.1", try Subjects(names: names(1), prefixes: [])))
        #expect(world.coordinator.ledger[1_000].pendingNames == 1)
        _ = try world.set(":1.1", .background)
        world.settle()
        #expect(world.coordinator.ledger[1_000].pendingNames == 0)
    }

    @Test func `a name for which there is no room is heard again, and each loss is counted`() throws {
        var quotas = Quotas()
        quotas.pendingNames = 1
        var world = World(quotas)
        _ = try world.register(":1.1", World.process(11), names(2))
        _ = try world.set(":1.1", .suspended)
        world.settle()
        let all = try names(2).map { try NotifyName($0) }
        for name in [all[0], all[1], all[1]] { world.send(.posted(name)) }
        #expect(world.rules == [all[1]] && world.coordinator.list.first?.dropped == 2)
    }
}

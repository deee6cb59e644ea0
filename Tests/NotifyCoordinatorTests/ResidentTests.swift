// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

@Suite struct ResidentTests {
    private static let id = ResidentID(.launch, 1)
    private static let name = NotifyName("com.example.a")

    private static func subjects(_ names: String..., prefixes: [String] = []) throws -> Subjects {
        try Subjects(names: names, prefixes: prefixes)
    }

    @Test func `each name posted after the names are held is pending once, and is announced once until it is taken`()
        throws
    {
        var world = World()
        world.send(.residentWants(Self.id, try Self.subjects("com.example.a", "com.example.b"), of: 1000))
        // Before the bus has the rules, nothing is promised.
        world.send(.posted(Self.name))
        #expect(world.wakes.isEmpty)
        world.settle()
        #expect(world.held[Self.id] == [nil])
        for text in ["com.example.b", "com.example.a", "com.example.b", "com.example.c"] {
            world.send(.posted(try NotifyName(text)))
        }
        #expect(world.coordinator.pendingNames(of: Self.id).map(\.string) == ["com.example.b", "com.example.a"])
        #expect(world.wakes[Self.id] == 1)
        world.send(.residentTook(Self.id))
        world.settle()
        #expect(world.coordinator.pendingNames(of: Self.id).isEmpty && world.held[Self.id] == [nil, nil])
        world.send(.posted(Self.name))
        #expect(world.coordinator.pendingNames(of: Self.id) == [Self.name] && world.wakes[Self.id] == 2)
    }

    @Test func `a storm of posts costs a resident one post, until it has taken that`() throws {
        var world = World()
        world.send(.residentWants(Self.id, try Self.subjects("com.example.a"), of: 1000))
        world.settle()
        #expect(world.rules == [Self.name])
        world.send(.posted(Self.name))
        #expect(world.rules == [])
        world.send(.residentTook(Self.id))
        world.settle()
        #expect(world.rules == [Self.name])
    }

    @Test func `a resident and a suspended program share a rule, and each keeps its own pending names`() throws {
        var world = World(interests: [Self.name])
        world.send(.residentWants(Self.id, try Self.subjects("com.example.a"), of: 1000))
        _ = try world.register(":1.1", World.process(11), ["com.example.a"])
        _ = try world.set(":1.1", .suspended)
        world.settle()
        #expect(world.rules == [Self.name] && world.wanted == [Self.name])
        world.send(.posted(Self.name))
        world.send(.residentTook(Self.id))
        world.settle()
        #expect(world.rules == [Self.name])
        _ = try world.set(":1.1", .foreground)
        world.settle()
        let id = try #require(world.coordinator.id(of: ":1.1"))
        #expect(world.delivered[id] == [Self.name])
        #expect(world.rules == [Self.name], "the resident still holds it")
        world.send(.connectionEnded(id))
        #expect(world.wanted == [Self.name])
        world.send(.residentLeft(Self.id))
        world.settle()
        #expect(world.rules.isEmpty && world.wanted.isEmpty && world.coordinator.totals.held == 0)
    }

    @Test func `what a resident no longer wants is neither held nor pending`() throws {
        var world = World()
        world.send(.residentWants(Self.id, try Self.subjects("com.example.a", prefixes: ["org."]), of: 1000))
        world.settle()
        world.send(.posted(Self.name))
        world.send(.posted(NotifyName("org.b")))
        world.send(.residentWants(Self.id, try Self.subjects(prefixes: ["org."]), of: 1000))
        world.settle()
        #expect(world.rules.isEmpty && world.prefixRules == [NamePrefix("org.")])
        #expect(world.coordinator.pendingNames(of: Self.id).map(\.string) == ["org.b"])
    }

    @Test func `beyond its user's quota a resident is refused more, and keeps what it had`() throws {
        var quotas = Quotas()
        quotas.names = 2
        var world = World(quotas)
        world.send(.residentWants(Self.id, try Self.subjects("com.example.a"), of: 1000))
        world.settle()
        world.send(
            .residentWants(Self.id, try Self.subjects("com.example.b", "com.example.c", "com.example.d"), of: 1000)
        )
        #expect(world.held[Self.id]?.last??.contains("limit") == true)
        #expect(world.rules == [Self.name])
        world.send(.residentWants(Self.id, try Self.subjects("com.example.b", "com.example.c"), of: 1000))
        world.settle()
        #expect(world.rules.count == 2 && world.held[Self.id]?.last == .some(nil))
        world.send(.residentLeft(Self.id))
        #expect(world.coordinator.ledger[1000].isEmpty)
    }
}

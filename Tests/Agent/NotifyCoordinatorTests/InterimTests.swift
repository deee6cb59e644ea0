// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import Testing

@testable import NotifyCoordinator

/// What the agent hears for programs behind the relay while one agent follows another.
@Suite struct InterimTests {
    private static let process = World.process(11)

    private func relayed(_ name: String = ":1.1", pending: [NotifyName] = []) -> Heritage.Relayed {
        Heritage.Relayed(name: name, user: 1000, prefixes: [NamePrefix("com.example.")], pending: pending)
    }

    /// A world whose agent has taken over from another one that had a program behind its relay.
    private func inherit(_ relayed: Heritage.Relayed..., quotas: Quotas = Quotas()) -> World {
        var world = World(quotas)
        var heritage = Heritage()
        heritage.relayed = relayed
        world.send(.inherit(heritage, []))
        world.settle()
        return world
    }

    private func register(_ world: inout World, prefixes: [String] = ["com.example."]) throws -> ConnectionID {
        _ = try world.register(":1.1", Self.process, prefixes: prefixes, isRelayed: true)
        return try #require(world.coordinator.id(of: ":1.1"))
    }

    @Test func `before it hands over the agent hears prefixes for those that listen or are suspended`() throws {
        var world = World()
        for (number, state) in [LifecycleState.foreground, .suspended, .background].enumerated() {
            let process = World.process(Int32(number + 11))
            let prefixes = ["com.example.\(number)."]
            _ = try world.register(":1.\(number)", process, ["com.example.a"], prefixes: prefixes, isRelayed: true)
            _ = try world.set(":1.\(number)", state)
            world.settle()
        }
        _ = try world.register(":1.9", World.process(19), ["com.example.b"], isRelayed: true)
        #expect(world.coordinator.hearsForRelayed && world.coordinator.interimAdditions == 0)
        world.send(.hearForRelayed)
        #expect(!world.coordinator.hearsForRelayed && world.coordinator.interimAdditions == 2)
        world.settle()
        #expect(world.coordinator.hearsForRelayed)
        #expect(world.prefixRules == [NamePrefix("com.example.0."), NamePrefix("com.example.1.")])
        #expect(world.rules.isEmpty)
        for text in ["com.example.1.x", "com.example.0.x", "com.example.0.x", "com.example.a"] {
            world.send(.posted(try NotifyName(text)))
        }
        let heritage = world.coordinator.heritage
        #expect(heritage.connections.isEmpty)
        #expect(heritage.relayed.map(\.name) == [":1.0", ":1.1"] && heritage.relayed.map(\.user) == [1000, 1000])
        #expect(heritage.relayed.map(\.pending) == [["com.example.0.x"], ["com.example.1.x"]])
    }

    @Test func `a prefix that is added before it has handed over is heard as well`() throws {
        var world = World()
        let id = try register(&world, prefixes: ["a."])
        world.send(.hearForRelayed)
        world.settle()
        let added = try Subjects(names: [], prefixes: ["b."])
        world.send(.addNames(world.call(), from: ":1.1", added))
        #expect(world.coordinator.subjects(of: id)?.prefixes.count == 2)
        world.send(.hearForRelayed)
        #expect(!world.coordinator.hearsForRelayed && world.coordinator.interimAdditions == 2)
        world.settle()
        #expect(world.prefixRules == [NamePrefix("a."), NamePrefix("b.")])
        world.send(.hearForRelayed)
        #expect(world.coordinator.hearsForRelayed && world.coordinator.interimAdditions == 2)
    }

    @Test func `an agent that stays leaves to its relay what it has begun to hear, and nothing else`() throws {
        var world = inherit(Heritage.Relayed(name: ":1.9", user: 1000, prefixes: [NamePrefix("b.")], pending: ["b.x"]))
        _ = try register(&world, prefixes: ["a."])
        for _ in 0..<3 {
            world.send(.hearForRelayed)
            world.settle()
            world.send(.posted("a.x"))
            world.send(.leaveToRelay)
            world.settle()
            #expect(world.prefixRules == [NamePrefix("b.")])
            #expect(world.coordinator.heritage.relayed.map(\.pending) == [["b.x"]])
        }
        world.send(.hearForRelayed)
        world.settle()
        #expect(world.coordinator.heritage.relayed.map(\.name) == [":1.9", ":1.1"])
        #expect(world.coordinator.heritage.relayed.map(\.pending) == [["b.x"], []])
    }

    @Test func `a program that its relay has always heard for is told nothing by an agent that stays`() throws {
        var world = World()
        let id = try register(&world, prefixes: ["a."])
        world.send(.hearForRelayed)
        world.settle()
        world.send(.posted("a.x"))
        world.send(.relayHears(":1.1"))
        world.send(.relayHearsAll(":1.1"))
        world.settle()
        #expect(world.delivered[id] == nil && world.prefixRules == [NamePrefix("a.")])
        #expect(world.coordinator.heritage.relayed.map(\.pending) == [["a.x"]])
        world.send(.leaveToRelay)
        world.settle()
        #expect(world.delivered[id] == nil && world.prefixRules.isEmpty)
    }

    @Test func `the next agent has taken over once it hears for them`() throws {
        var world = World()
        var heritage = Heritage()
        heritage.relayed = [relayed(), relayed(":1.2")]
        world.send(.inherit(heritage, []))
        #expect(!world.isInherited && world.watchedEnds.count == 2)
        world.settle()
        #expect(world.isInherited && world.prefixRules == [NamePrefix("com.example.")])
    }

    @Test func `once the next relay hears for a program it gets what was posted in between, each name once`() throws {
        var world = inherit(relayed(pending: ["com.example.b", "com.example.a"]))
        world.send(.posted("com.example.a"))
        world.send(.posted("com.example.c"))
        let id = try register(&world)
        world.settle()
        #expect(world.delivered[id] == nil)
        world.send(.relayHears(":1.1"))
        // The bus may have sent it before the relay heard.
        world.send(.posted("com.example.d"))
        #expect(world.delivered[id] == nil)
        world.settle()
        #expect(world.delivered[id] == ["com.example.b", "com.example.a", "com.example.c", "com.example.d"])
        #expect(world.prefixRules.isEmpty && world.watchedEnds.isEmpty)
        world.send(.relayHears(":1.1"))
        world.settle()
        #expect(world.delivered[id]?.count == 4 && world.coordinator.heritage.relayed.isEmpty)
    }

    @Test func `what it has not told yet waits, and what it no longer observes goes once it has told all`() throws {
        for isAdded in [true, false] {
            var world = inherit(
                Heritage.Relayed(
                    name: ":1.1",
                    user: 1000,
                    prefixes: [NamePrefix("com.example."), NamePrefix("com.example.b.")],
                    pending: ["com.example.a", "com.example.b.c"]
                )
            )
            let id = try register(&world, prefixes: ["com.example.b."])
            world.send(.relayHears(":1.1"))
            world.settle()
            #expect(world.delivered[id] == ["com.example.b.c"])
            #expect(world.prefixRules == [NamePrefix("com.example.")] && world.watchedEnds.count == 1)
            // The relay hears the second.
            for text in ["com.example.d", "com.example.b.d"] { world.send(.posted(try NotifyName(text))) }
            if isAdded {
                let added = try Subjects(names: [], prefixes: ["com.example."])
                world.send(.addNames(world.call(), from: ":1.1", added))
                world.send(.relayHears(":1.1"))
            } else {
                world.send(.heritageIsOld)
                #expect(!world.prefixRules.isEmpty)
                world.send(.relayHearsAll(":1.1"))
            }
            world.settle()
            #expect(
                world.delivered[id]
                    == (isAdded ? ["com.example.b.c", "com.example.a", "com.example.d"] : ["com.example.b.c"])
            )
            #expect(world.prefixRules.isEmpty && world.watchedEnds.isEmpty)
            #expect(world.coordinator.ledger[1000].pendingNames == 0)
        }
    }

    @Test func `it hears by the agent again what it has dropped and added before the next agent takes over`() throws {
        var world = inherit(relayed(pending: ["com.example.a"]))
        let id = try register(&world, prefixes: ["com.other."])
        let added = try Subjects(names: [], prefixes: ["com.example."])
        world.send(.addNames(world.call(), from: ":1.1", added))
        world.send(.relayHears(":1.1"))
        world.settle()
        #expect(world.delivered[id] == ["com.example.a"])
        world.send(.hearForRelayed)
        world.settle()
        world.send(.posted("com.example.b"))
        #expect(world.coordinator.heritage.relayed.map(\.pending) == [["com.example.b"]])
        #expect(world.prefixRules == [NamePrefix("com.example."), NamePrefix("com.other.")])
    }

    @Test func `nothing is kept for a program that has gone into the background, even if it comes back`() throws {
        // Also if it is in the background when it registers.
        for isThere in [true, false] {
            var world = inherit(
                Heritage.Relayed(
                    name: ":1.1",
                    user: 1000,
                    prefixes: [NamePrefix("com.example."), NamePrefix("gone.")],
                    pending: ["com.example.a"]
                )
            )
            _ = try world.register(":1.1", Self.process, prefixes: ["com.example."], isRelayed: true) {
                if isThere { ($0.state, $0.decider) = (.background, "person") }
            }
            let id = try #require(world.coordinator.id(of: ":1.1"))
            if isThere {
                world.send(.relayHears(":1.1"))
            } else {
                _ = try world.set(":1.1", .background)
            }
            world.settle()
            world.send(.posted("com.example.b"))
            _ = try world.set(":1.1", .foreground)
            world.settle()
            world.send(.relayHears(":1.1"))
            world.send(.relayHearsAll(":1.1"))
            world.settle()
            #expect(world.states[id] == .foreground && world.delivered[id] == nil)
            #expect(world.prefixRules.isEmpty && world.watchedEnds.isEmpty)
            #expect(world.coordinator.ledger[1000].pendingNames == 0)
        }
    }

    @Test func `nothing is kept any longer for a program that has left, and everything for one that is yet to come`()
        throws
    {
        var world = inherit(relayed(pending: ["com.example.a"]), relayed(":1.2", pending: ["com.example.b"]))
        world.send(.relayHearsAll(":1.1"))
        world.settle()
        let id = try #require(world.coordinator.interimID(of: ":1.1"))
        #expect(world.coordinator.connectionNames.map(\.name) == [":1.1", ":1.2"])
        world.send(.connectionEnded(id))
        world.settle()
        #expect(world.coordinator.heritage.relayed.map(\.name) == [":1.2"] && world.watchedEnds.count == 1)
        #expect(world.prefixRules == [NamePrefix("com.example.")])
        // As it was, to the next one.
        #expect(world.coordinator.heritage.relayed == [relayed(":1.2", pending: ["com.example.b"])])
    }

    @Test func `one that leaves before its prefixes are subscribed does not keep the agent from taking over`() throws {
        var world = World()
        var heritage = Heritage()
        heritage.relayed = [relayed()]
        world.send(.inherit(heritage, []))
        world.send(.connectionEnded(try #require(world.coordinator.interimID(of: ":1.1"))))
        #expect(world.isInherited)
        world.settle()
        #expect(world.prefixRules.isEmpty)
    }

    @Test func `a user's quota limits what is kept, and what is lost is counted`() throws {
        var quotas = Quotas()
        quotas.pendingNames = 2
        var world = inherit(relayed(pending: ["com.example.a", "com.example.b", "com.example.c"]), quotas: quotas)
        let id = try register(&world)
        world.send(.relayHears(":1.1"))
        world.settle()
        #expect(world.delivered[id] == ["com.example.a", "com.example.b"])
        #expect(world.coordinator.entry(of: id)?.dropped == 1)
        #expect(world.coordinator.ledger[1000].pendingNames == 0)
    }

    @Test func `names that the relay has yet to pass on come first, and only those of the prefixes`() throws {
        var relayed = relayed(pending: ["com.example.a", "com.example.b"])
        relayed.add(["com.other", "com.example.c", "com.example.a", "com.example.c"])
        #expect(relayed.pending == ["com.example.c", "com.example.a", "com.example.b"])
    }
}

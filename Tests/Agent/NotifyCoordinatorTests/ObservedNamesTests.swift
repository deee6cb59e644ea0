// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

@Suite struct ObservedNamesTests {
    private static let names = ["com.a", "com.a.b", "com.a.b.c", "com.b", "org.a", "org.ä", "org.a\u{308}"]
    private static let prefixes = ["", "com.", "com.a", "com.a.b.c", "org.a", "org.\u{e4}", "x"]

    @Test func `a name of interest is reported when its first observer comes and when its last has left`() throws {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<120 {
            let interests = try Set(Self.names.filter { _ in Bool.random(using: &random) }.map { try NotifyName($0) })
            var observed = ObservedNames(interests: interests)
            var holders: [Subjects] = []
            var told: Set<NotifyName> = []
            for _ in 0..<30 {
                // Several at once, as when one succeeds another.
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    if !holders.isEmpty, Bool.random(using: &random) {
                        observed.remove(holders.remove(at: Int.random(in: holders.indices, using: &random)))
                    } else {
                        let own = Self.names.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
                        let wide = Self.prefixes.filter { _ in Int.random(in: 0..<5, using: &random) == 0 }
                        holders.append(try Subjects(names: own, prefixes: wide))
                        observed.insert(holders[holders.count - 1])
                    }
                }
                for (name, isWanted) in observed.takeChanges() {
                    #expect(isWanted ? told.insert(name).inserted : told.remove(name) != nil)
                }
                #expect(told == interests.filter { name in holders.contains { $0.contains(name) } })
                for text in Self.names {
                    let name = try NotifyName(text)
                    let expected = holders.reduce(0) { count, subjects in
                        count + (subjects.names.contains(name) ? 1 : 0)
                            + subjects.prefixes.count { $0.begins(name) }
                    }
                    #expect(observed.count(of: name) == expected && observed.contains(name) == (expected > 0))
                    #expect(observed.containsExactly(name) == holders.contains { $0.names.contains(name) })
                }
            }
        }
    }

    @Test func `the agent's own names are wanted until it observes others, and their states are kept as long`() throws {
        let (zone, net) = (NotifyName("com.example.zone"), NotifyName("com.example.net"))
        var world = World(interests: [zone, net])
        world.send(.agentObserves(try Subjects(names: ["com.example.zone"], prefixes: [])))
        #expect(world.wanted == [zone])
        let call = world.call()
        world.send(.setNameState(call, by: Caller(user: 1000), zone, 7))
        #expect(world.refusals[call] == nil)
        world.send(.agentObserves(try Subjects(names: ["com.example.net"], prefixes: ["com.example.z"])))
        #expect(world.wanted == [zone, net])
        world.send(.agentObserves(Subjects()))
        #expect(world.wanted.isEmpty)
        let question = world.call()
        world.send(.getNameState(question, zone))
        guard case .value(let value)? = world.answers[question] else { return #expect(Bool(false), "no answer") }
        #expect(value == 0)
        #expect(world.rules.isEmpty && world.prefixRules.isEmpty, "the agent hears these by itself")
    }

    @Test func `observers want their names in every state until they have left`() throws {
        let (zone, net) = (NotifyName("com.example.zone"), NotifyName("com.example.net"))
        var world = World(interests: [zone, net])
        _ = try world.register(":1.1", World.process(11), ["com.example.zone", "com.example.other"])
        #expect(world.wanted == [zone])
        _ = try world.register(":1.2", World.process(12), [], prefixes: ["com.example."])
        #expect(world.wanted == [zone, net])
        for state in [LifecycleState.background, .suspended, .foreground] {
            _ = try world.set(":1.1", state)
            world.settle()
            #expect(world.wanted == [zone, net])
        }
        let second = try #require(world.coordinator.id(of: ":1.2"))
        world.send(.connectionEnded(second))
        #expect(world.wanted == [zone])
        // When it reconnects, it succeeds itself, and nothing is reported.
        _ = try world.register(":1.3", World.process(11), ["com.example.zone"]) { $0.previous = ":1.1" }
        #expect(world.wanted == [zone])
        world.send(.removeNames(world.call(), from: ":1.3", try Subjects(names: ["com.example.zone"], prefixes: [])))
        #expect(world.wanted.isEmpty)
    }
}

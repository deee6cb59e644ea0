// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

@Suite struct ProxyTests {
    @Test
    func `there are rules for exactly what is subscribed and not yet pending, whatever happens in whatever order`()
        throws
    {
        var random = SeededGenerator(seed: 5)
        let names = (0..<12).map { "com.example.name\($0)" }
        let prefixes = ["com.", "com.example.", "com.example.name1", "org."]
        for _ in 0..<200 {
            var world = World()
            for number in 0..<4 {
                let own = names.filter { _ in Bool.random(using: &random) }
                let wide = prefixes.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
                _ = try world.register(":1.\(number)", World.process(Int32(number + 10)), own, prefixes: wide)
            }
            for _ in 0..<12 {
                let number = Int.random(in: 0..<4, using: &random)
                _ = try world.set(":1.\(number)", LifecycleState.allCases.randomElement(using: &random) ?? .foreground)
                for _ in 0..<Int.random(in: 0...4, using: &random) { world.step(using: &random) }
            }
            world.settle(using: &random)
            let suspended = world.coordinator.list.filter { $0.state == .suspended }
            let subscribed = suspended.reduce(into: Subjects()) { $0.formUnion($1.subjects) }
            #expect(world.rules == subscribed.names && world.prefixRules == subscribed.prefixes)
            #expect(world.coordinator.totals.held == subscribed.names.count + subscribed.prefixes.count)
        }
    }

    @Test func `a name that is pending for all observers has no rule until it no longer is for one`() throws {
        var world = World()
        for number in 1...2 {
            _ = try world.register(":1.\(number)", World.process(Int32(number + 10)), ["com.example.a"])
            _ = try world.set(":1.\(number)", .suspended)
        }
        world.settle()
        let name = NotifyName("com.example.a")
        #expect(world.rules == [name])
        world.send(.posted(name))
        #expect(world.rules.isEmpty)
        _ = try world.register(":1.3", World.process(13), ["com.example.a"])
        _ = try world.set(":1.3", .suspended)
        world.settle()
        #expect(world.rules == [name])
        _ = try world.set(":1.1", .foreground)
        world.settle()
        let id = try #require(world.coordinator.id(of: ":1.1"))
        #expect(world.delivered[id] == [name])
    }

    @Test func `ten thousand names are subscribed in small requests, with others' requests in between`() throws {
        var world = World()
        let names = (0..<10_000).map { "com.example.many.\($0)" }
        _ = try world.register(":1.1", World.process(11), names)
        _ = try world.register(":1.2", World.process(12, user: 1001), ["com.example.own"])
        let long = try world.set(":1.1", .suspended, by: 0)
        let short = try world.set(":1.2", .suspended, by: 0)
        var steps = 0
        while world.answers[short] == nil, steps < 100 {
            var random = SeededGenerator(seed: UInt64(steps))
            world.step(using: &random)
            steps += 1
        }
        #expect(world.answers[short] != nil && world.answers[long] == nil)
        world.settle()
        #expect(world.answers[long] != nil && world.rules.count == 10_001 && world.longestRequest <= 256)
        // The same on the way back.
        let back = try world.set(":1.1", .foreground, by: 0)
        world.settle()
        #expect(world.answers[back] != nil && world.rules.count == 1 && world.longestRequest <= 256)
    }

    @Test func `names that have rules already are taken in slices, with one question to the bus in between`() throws {
        var world = World()
        let names = (0..<10_000).map { "com.example.many.\($0)" }
        for number in 1...3 { _ = try world.register(":1.\(number)", World.process(Int32(number + 10)), names) }
        _ = try world.set(":1.1", .suspended)
        world.settle()
        #expect(world.rules.count == 10_000)
        let second = try world.set(":1.2", .suspended)
        #expect(world.bus.count == 1 && world.answers[second] == nil)
        // Requests that come meanwhile are handled when the bus has answered.
        let third = try world.set(":1.3", .suspended)
        #expect(world.bus.count == 1)
        world.settle()
        #expect(world.answers[second] != nil && world.answers[third] != nil && world.rules.count == 10_000)
    }

    @Test func `many prefixes have one rule, few have one each`() throws {
        var world = World()
        let prefixes = (0..<1_000).map { "com.example.prefix\($0)." }
        _ = try world.register(":1.1", World.process(11), [], prefixes: prefixes)
        _ = try world.register(":1.2", World.process(12), [], prefixes: Array(prefixes.prefix(20)))
        _ = try world.set(":1.1", .suspended)
        _ = try world.set(":1.2", .suspended)
        world.settle()
        #expect(world.prefixRules == [NamePrefix("")])
        let id = try #require(world.coordinator.id(of: ":1.1"))
        world.send(.posted(NotifyName("com.example.prefix999.a")))
        world.send(.posted(NotifyName("com.example.other")))
        #expect(world.coordinator.entry(of: id)?.pending == 1)
        world.send(.connectionEnded(id))
        world.settle()
        #expect(world.prefixRules == Set(prefixes.prefix(20).map(NamePrefix.init)))
    }

    @Test func `many prefixes whose rule the bus has refused can be held later`() throws {
        var world = World()
        let prefixes = (0..<200).map { "com.example.prefix\($0)." }
        _ = try world.register(":1.1", World.process(11), [], prefixes: prefixes)
        world.ruleFailure = "no more rules"
        let refused = try world.set(":1.1", .suspended)
        world.settle()
        #expect(world.refusals[refused] != nil && world.prefixRules.isEmpty)
        world.ruleFailure = nil
        let call = try world.set(":1.1", .suspended)
        world.settle()
        #expect(world.answers[call] == .connections(1) && world.prefixRules == [NamePrefix("")])
    }

    @Test func `the rule for all prefixes goes with the last of them, also if all go at once`() throws {
        var world = World()
        let prefixes = (0..<200).map { "com.example.prefix\($0)." }
        for round in 1...2 {
            _ = try world.register(":1.\(round)", World.process(Int32(10 + round)), [], prefixes: prefixes)
            _ = try world.set(":1.\(round)", .suspended)
            world.settle()
            #expect(world.prefixRules == [NamePrefix("")])
            _ = try world.set(":1.\(round)", .foreground)
            world.settle()
            #expect(world.prefixRules.isEmpty)
        }
    }

    @Test func `the rule for all prefixes stays if other prefixes take the place of most`() throws {
        let prefixes = (0..<12).map { NamePrefix("com.example.p\($0).") }
        for kept in 0...2 {
            var bus = ProxyBus(prefixRules: 4)
            bus.subscribe(prefixes[..<6], for: 1)
            bus.answer()
            #expect(bus.prefixes == [NamePrefix("")])
            // In one part, most of the old ones go before the new ones come, or after it.
            bus.proxies.subscribe(
                Subjects(names: [], prefixes: Set(prefixes[(6 - kept)...])),
                for: ConnectionID(2),
                of: 1_000,
                inPlaceOf: ConnectionID(1)
            )
            bus.answer()
            #expect(bus.prefixes.contains(NamePrefix("")) && bus.proxies.isAtRest)
            bus.proxies.unsubscribeAll(for: ConnectionID(2))
            bus.answer()
            #expect(bus.prefixes.isEmpty && bus.proxies.isAtRest)
        }
    }

    @Test func `the rule for all prefixes goes if they have become few before the bus has it`() {
        let prefixes = (0..<6).map { NamePrefix("com.example.p\($0).") }
        for rest in 0...2 {
            // Before, these have rules of their own.
            for own in 0...3 {
                var bus = ProxyBus(prefixRules: 4)
                bus.subscribe(prefixes[..<own], for: 1)
                bus.answer()
                bus.subscribe(prefixes[own...], for: 2)
                bus.take()
                for (number, all) in [(UInt64(1), prefixes[..<own]), (2, prefixes[own...])] {
                    bus.unsubscribe(all.filter { !prefixes[2..<(2 + rest)].contains($0) }[...], for: number)
                }
                bus.answer()
                #expect(bus.prefixes == Set(prefixes[2..<(2 + rest)]) && bus.proxies.isAtRest, "\(rest) \(own)")
                bus.proxies.unsubscribeAll(for: ConnectionID(1))
                bus.proxies.unsubscribeAll(for: ConnectionID(2))
                bus.answer()
                #expect(bus.prefixes.isEmpty && bus.proxies.isAtRest)
            }
        }
    }

    @Test func `the rule for all prefixes stays while the bus may refuse one that replaces it`() {
        var bus = ProxyBus(prefixRules: 4)
        let (one, all): (ArraySlice, ArraySlice) = ([NamePrefix("com.")], [NamePrefix("")])
        bus.subscribe(one, for: 1)
        bus.subscribe(all, for: 2)
        bus.answer()
        // One gets a rule of its own. Before the bus confirms that, another needs the rule for all, and no longer does.
        bus.unsubscribe(all, for: 2)
        bus.subscribe(all, for: 3)
        bus.unsubscribe(all, for: 3)
        bus.take()
        #expect(bus.prefixes == [one[0], all[0]])
        bus.answer(failure: "too many")
        #expect(bus.prefixes == [all[0]])
        #expect(bus.proxies.subscribers(of: "com.example.a").byPrefix.count == 1)
        bus.unsubscribe(one, for: 1)
        bus.answer()
        #expect(bus.prefixes.isEmpty && bus.proxies.isAtRest)
    }

    @Test func `a connection that waits for a rule that the bus refuses is told so, and no other`() {
        var proxies = KeptProxies()
        let subjects: [Subjects] = [["com.example.a"], ["com.example.a", "com.example.b"], ["com.example.c"]].map {
            Subjects(names: $0)
        }
        for (number, subjects) in subjects.enumerated() {
            proxies.subscribe(subjects, for: ConnectionID(UInt64(number)), of: 1_000)
        }
        let first = proxies.takeEffects()
        guard case .subscribe(let ticket, names: ["com.example.a"], prefixes: []) = first.first else {
            Issue.record("\(first)")
            return
        }
        proxies.rulesAreSet(ticket, failure: "too many")
        let refused = proxies.takeEffects().filter { if case .subscribed = $0 { true } else { false } }
        #expect(
            refused == [
                .subscribed(ConnectionID(0), failure: "too many"), .subscribed(ConnectionID(1), failure: "too many"),
            ]
        )
        #expect(!proxies.subscribes(subjects[0], for: ConnectionID(0)))
        #expect(proxies.subscribes(subjects[2], for: ConnectionID(2)))
        // Nor is it told so once more.
        proxies.unsubscribeAll(for: ConnectionID(0))
        #expect(proxies.takeEffects().isEmpty)
    }

    @Test func `a connection hears posts again once the rules that were no longer needed stand again`() {
        var proxies = KeptProxies()
        let (id, name): (ConnectionID, NotifyName) = (ConnectionID(1), "com.example.a")
        proxies.subscribe(Subjects(names: [name]), for: id, of: 1_000)
        for case .subscribe(let ticket, _, _) in proxies.takeEffects() { proxies.rulesAreSet(ticket, failure: nil) }
        #expect(proxies.takeEffects() == [.subscribed(id, failure: nil)])
        proxies.dropRule(of: name)
        #expect(proxies.takeEffects() == [.unsubscribe(nil, names: [name], prefixes: [])])
        proxies.resubscribe(id)
        let effects = proxies.takeEffects()
        guard case .subscribe(let ticket, names: [name], prefixes: []) = effects.first, effects.count == 1 else {
            Issue.record("\(effects)")
            return
        }
        proxies.rulesAreSet(ticket, failure: nil)
        #expect(proxies.takeEffects() == [.subscribed(id, failure: nil)])
    }

    @Test func `a connection gets its turn, too, if it takes the place of one that was waiting for its own`() throws {
        var proxies = KeptProxies()
        func subjects(_ number: UInt64) throws -> Subjects {
            let names = try (0..<ProxyParts().request).map { try NotifyName("com.example.c\(number).n\($0)") }
            return Subjects(names: Set(names))
        }
        for number in 0...4 as ClosedRange<UInt64> {
            proxies.subscribe(try subjects(number), for: ConnectionID(number), of: 1_000)
        }
        // The bus has to answer before the last one gets its turn.
        var requests = proxies.takeEffects()
        #expect(requests.count == 4)
        proxies.subscribe(try subjects(4), for: ConnectionID(5), of: 1_000, inPlaceOf: ConnectionID(4))
        var subscribed: [ConnectionID] = []
        while !requests.isEmpty {
            for effect in requests {
                if case .subscribe(let ticket, _, _) = effect { proxies.rulesAreSet(ticket, failure: nil) }
                if case .subscribed(let id, nil) = effect { subscribed.append(id) }
            }
            requests = proxies.takeEffects()
        }
        #expect(subscribed.last == ConnectionID(5) && subscribed.count == 5 && proxies.isAtRest)
    }

    @Test func `prefixes that differ only in their Unicode form are distinct`() throws {
        var world = World()
        let (composed, decomposed) = ("caf\u{e9}.", "cafe\u{301}.")
        _ = try world.register(":1.1", World.process(11), [], prefixes: [composed, decomposed])
        _ = try world.set(":1.1", .suspended)
        world.settle()
        #expect(world.prefixRules == [NamePrefix(composed), NamePrefix(decomposed)])
        let id = try #require(world.coordinator.id(of: ":1.1"))
        world.send(.removeNames(world.call(), from: ":1.1", try Subjects(names: [], prefixes: [composed])))
        for prefix in [composed, decomposed] { world.send(.posted(try NotifyName(prefix + "open"))) }
        #expect(world.coordinator.entry(of: id)?.pending == 1)
    }

    @Test func `a post costs no more with 50,000 subscribed prefixes than with fifty`() throws {
        func cost(_ count: Int) throws -> Int64 {
            var quotas = Quotas()
            quotas.prefixes = 50_000
            quotas.bytes = 1 << 30
            var world = World(quotas)
            var rest = (0..<count).map { "com.example.prefix.\($0)." }[...]
            var number = 0
            while !rest.isEmpty {
                number += 1
                _ = try world.register(":1.\(number)", World.process(11), [], prefixes: Array(rest.prefix(1_000)))
                rest = rest.dropFirst(1_000)
            }
            _ = try world.set("pid:11", .suspended)
            world.settle()
            #expect(world.coordinator.totals.held == count)
            let names = try (0..<500).map { try NotifyName("com.example.prefix.\($0 % count).name") }
            return (0..<5).map { _ in
                let began = threadTime()
                for name in names { world.send(.posted(name)) }
                return threadTime() - began
            }.min() ?? 0
        }
        let (few, many) = try (cost(50), cost(50_000))
        // It would cost a thousand times as much if each post checked each prefix.
        #expect(many < 50 * few, "\(many / 500) ns a post, and \(few / 500) ns with fifty")
    }

    private func threadTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    @Test func `who subscribes to what is being asked for waits for that answer`() throws {
        var proxies = KeptProxies()
        let subjects = Subjects(names: ["com.example.a"])
        proxies.subscribe(subjects, for: ConnectionID(1), of: 1_000)
        guard case .subscribe(let ticket, _, _)? = proxies.takeEffects().first else {
            Issue.record("nothing is asked for")
            return
        }
        proxies.subscribe(subjects, for: ConnectionID(2), of: 1_000)
        #expect(proxies.takeEffects().isEmpty && !proxies.isAtRest)
        proxies.rulesAreSet(ticket, failure: nil)
        let both = [1, 2].map { ProxySubscriptions.Effect.subscribed(ConnectionID($0), failure: nil) }
        #expect(Set(proxies.takeEffects()) == Set(both) && proxies.isAtRest)
    }

    @Test func `many names are given up in small requests, each when the bus has processed the one before`() throws {
        var proxies = KeptProxies()
        let names = try (0..<2_000).map { try NotifyName("com.example.n\($0)") }
        proxies.subscribe(Subjects(names: Set(names)), for: ConnectionID(1), of: 1_000)
        var released: [Int] = []
        func answer() {
            while case let effects = proxies.takeEffects(), !effects.isEmpty {
                for effect in effects {
                    switch effect {
                    case .subscribe(let ticket, _, _): proxies.rulesAreSet(ticket, failure: nil)
                    case .unsubscribe(let ticket, let names, _):
                        released.append(names.count)
                        if let ticket { proxies.rulesAreSet(ticket, failure: nil) }
                    case .subscribed: break
                    }
                }
            }
        }
        answer()
        proxies.unsubscribeAll(for: ConnectionID(1))
        let first = proxies.takeEffects()
        #expect(first.count == 1)
        for case .unsubscribe(let ticket?, _, _) in first { proxies.rulesAreSet(ticket, failure: nil) }
        answer()
        #expect(released.reduce(ProxyParts().request, +) == names.count && proxies.isAtRest)
    }

    @Test func `a rule stays on the bus when a connection takes another's place, however many names both observe`()
        throws
    {
        let shared = try (0..<3 * ProxyParts().request + 1).map { try NotifyName("com.example.n\($0)") }
        let prefixes = Set((0..<300).map { NamePrefix("com.example.p\($0).") })
        // The bus has processed nothing of what was requested for the previous one, the first part, or all of it.
        for processed in [0, 1, Int.max] {
            var proxies = KeptProxies()
            var (rules, removed): (Set<NotifyName>, Set<NotifyName>) = ([], [])
            var tickets: [Ticket] = []
            var ready: Set<ConnectionID> = []
            func take() {
                for effect in proxies.takeEffects() {
                    switch effect {
                    case .subscribe(let ticket, let names, _):
                        rules.formUnion(names)
                        tickets.append(ticket)
                    case .unsubscribe(let ticket, let names, _):
                        rules.subtract(names)
                        removed.formUnion(names)
                        if let ticket { tickets.append(ticket) }
                    case .subscribed(let id, _): ready.insert(id)
                    }
                }
            }
            func answer(_ most: Int = .max) {
                take()
                var count = 0
                while count < most, !tickets.isEmpty {
                    proxies.rulesAreSet(tickets.removeFirst(), failure: nil)
                    count += 1
                    take()
                }
            }
            let old = Subjects(names: Set(shared + ["com.example.old"]), prefixes: prefixes)
            let new = Subjects(names: Set(shared + ["com.example.new"]), prefixes: prefixes)
            proxies.subscribe(old, for: ConnectionID(1), of: 1_000)
            answer(processed)
            proxies.subscribe(new, for: ConnectionID(2), of: 1_000, inPlaceOf: ConnectionID(1))
            proxies.unsubscribeAll(for: ConnectionID(1))
            answer()
            #expect(removed.subtracting(["com.example.old"]).isEmpty)
            #expect(rules == new.names && ready.contains(ConnectionID(2)) && proxies.isAtRest)
            #expect(proxies.subscribers(of: shared[0]).byName == [ConnectionID(2)])
            #expect(!proxies.subscribes(Subjects(names: [shared[0]]), for: ConnectionID(1)))
        }
    }

    @Test func `who gives up its names while the bus refuses some of them keeps none`() throws {
        var proxies = KeptProxies()
        let names = try (0..<400).map { try NotifyName("com.example.n\($0)") }
        proxies.subscribe(Subjects(names: Set(names), prefixes: [NamePrefix("com.")]), for: ConnectionID(1), of: 1_000)
        for case .subscribe(let ticket, _, _) in proxies.takeEffects() { proxies.rulesAreSet(ticket, failure: nil) }
        let second = proxies.takeEffects()
        proxies.unsubscribeAll(for: ConnectionID(1))
        for case .subscribe(let ticket, _, _) in second { proxies.rulesAreSet(ticket, failure: "too many") }
        let released = proxies.takeEffects().flatMap { effect -> [NotifyName] in
            guard case .unsubscribe(let ticket, let names, _) = effect else { return [] }
            if let ticket { proxies.rulesAreSet(ticket, failure: nil) }
            return names
        }
        #expect(released.count == ProxyParts().request && proxies.table.count == 0 && proxies.isAtRest)
    }

    @Test func `the bus is asked something if that is wanted, though it has all rules already`() {
        var proxies = ProxySubscriptions()
        let (id, subjects) = (ConnectionID(1), Subjects(names: ["com.example.a"]))
        for case .subscribe(let ticket, _, _) in proxies.subscribe(subjects, for: id, of: 1_000) {
            #expect(proxies.rulesAreSet(ticket, failure: nil) == [.subscribed(id, failure: nil)])
        }
        let effects = proxies.subscribe(subjects, for: id, of: 1_000, synchronizes: true)
        guard case .subscribe(let ticket, [], [])? = effects.first, effects.count == 1 else {
            Issue.record("\(effects)")
            return
        }
        #expect(proxies.rulesAreSet(ticket, failure: nil) == [.subscribed(id, failure: nil)])
        #expect(proxies.subscribe(subjects, for: id, of: 1_000) == [.subscribed(id, failure: nil)])
    }

    @Test func `nothing is left of a connection for which nothing is subscribed any more`() {
        let subjects = Subjects(names: ["com.example.a"])
        let rest = [ConnectionID(1), ConnectionID(2)].map { id in
            var proxies = ProxySubscriptions()
            for case .subscribe(let ticket, _, _) in proxies.subscribe(subjects, for: id, of: 1_000) {
                _ = proxies.rulesAreSet(ticket, failure: nil)
            }
            _ = proxies.unsubscribeAll(for: id)
            return proxies
        }
        #expect(rest[0] == rest[1])
    }

    @Test func `tables of prefixes differ if their content does`() {
        var tables = [PrefixIndex<Int>(), PrefixIndex<Int>(), PrefixIndex<Int>()]
        let (com, org) = (NamePrefix("com."), NamePrefix("org."))
        (tables[0][com], tables[1][com], tables[2][org]) = (1, 1, 1)
        #expect(tables[0] == tables[1] && tables[0] != tables[2] && tables[0] != PrefixIndex<Int>())
    }

    @Test func `who asks twice before it is its turn waits for one answer`() throws {
        var proxies = KeptProxies()
        var tickets: [Ticket] = []
        // As much as may be asked for at once.
        for number: UInt64 in 1...4 {
            let names = try (0..<300).map { try NotifyName("com.example.n\(number).\($0)") }
            proxies.subscribe(Subjects(names: Set(names)), for: ConnectionID(number), of: 1_000)
            for case .subscribe(let ticket, _, _) in proxies.takeEffects() { tickets.append(ticket) }
        }
        for name in ["com.example.a", "com.example.b"] as [NotifyName] {
            proxies.subscribe(Subjects(names: [name]), for: ConnectionID(5), of: 1_000)
        }
        #expect(tickets.count == 4 && proxies.takeEffects().isEmpty)
        proxies.rulesAreSet(tickets[0], failure: nil)
        let effects = proxies.takeEffects()
        let asked = effects.flatMap { effect -> [NotifyName] in
            if case .subscribe(_, let names, _) = effect { names } else { [] }
        }
        #expect(asked.contains("com.example.a") && asked.contains("com.example.b"))
        #expect(!effects.contains(.subscribed(ConnectionID(5), failure: nil)))
    }
}

/// Subscriptions whose effects are kept until they are taken.
@dynamicMemberLookup
private struct KeptProxies {
    private var proxies: ProxySubscriptions
    private var effects: [ProxySubscriptions.Effect] = []

    init(prefixRules: Int = PrefixRules.limit) { proxies = ProxySubscriptions(prefixRules: prefixRules) }

    subscript<Value>(dynamicMember path: KeyPath<ProxySubscriptions, Value>) -> Value { proxies[keyPath: path] }

    func subscribers(of name: NotifyName) -> (byName: [ConnectionID], byPrefix: [(NamePrefix, ConnectionID)]) {
        proxies.subscribers(of: name)
    }

    func subscribes(_ subjects: Subjects, for id: ConnectionID) -> Bool { proxies.subscribes(subjects, for: id) }

    mutating func takeEffects() -> [ProxySubscriptions.Effect] {
        defer { effects = [] }
        return effects
    }

    mutating func subscribe(_ subjects: Subjects, for id: ConnectionID, of user: UInt32) {
        effects += proxies.subscribe(subjects, for: id, of: user)
    }

    mutating func subscribe(
        _ subjects: Subjects,
        for id: ConnectionID,
        of user: UInt32,
        inPlaceOf previous: ConnectionID
    ) {
        effects += proxies.subscribe(subjects, for: id, of: user, inPlaceOf: previous)
    }

    mutating func unsubscribe(_ subjects: Subjects, for id: ConnectionID) {
        effects += proxies.unsubscribe(subjects, for: id)
    }

    mutating func unsubscribeAll(for id: ConnectionID) { effects += proxies.unsubscribeAll(for: id) }

    mutating func resubscribe(_ id: ConnectionID) { effects += proxies.resubscribe(id) }

    mutating func dropRule(of name: NotifyName) { effects += proxies.dropRule(of: name) }

    mutating func rulesAreSet(_ ticket: Ticket, failure: String?) {
        effects += proxies.rulesAreSet(ticket, failure: failure)
    }
}

/// A bus with the rules that are requested from it. It answers when it is told to.
private struct ProxyBus {
    var proxies: KeptProxies
    var prefixes: Set<NamePrefix> = []
    private var tickets: [(Ticket, [NamePrefix])] = []

    init(prefixRules: Int) { proxies = KeptProxies(prefixRules: prefixRules) }

    mutating func subscribe(_ prefixes: ArraySlice<NamePrefix>, for number: UInt64) {
        proxies.subscribe(Subjects(names: [], prefixes: Set(prefixes)), for: ConnectionID(number), of: 1_000)
    }

    mutating func unsubscribe(_ prefixes: ArraySlice<NamePrefix>, for number: UInt64) {
        proxies.unsubscribe(Subjects(names: [], prefixes: Set(prefixes)), for: ConnectionID(number))
    }

    /// Takes the requests.
    mutating func take() {
        for effect in proxies.takeEffects() {
            switch effect {
            case .subscribe(let ticket, _, let requested):
                prefixes.formUnion(requested)
                tickets.append((ticket, requested))
            case .unsubscribe(let ticket, _, let released):
                prefixes.subtract(released)
                if let ticket { tickets.append((ticket, [])) }
            case .subscribed: break
            }
        }
    }

    /// Answers every request. One that fails has left no rule.
    mutating func answer(failure: String? = nil) {
        take()
        while !tickets.isEmpty {
            let (ticket, requested) = tickets.removeFirst()
            let fails = failure != nil && !requested.isEmpty
            if fails { prefixes.subtract(requested) }
            proxies.rulesAreSet(ticket, failure: fails ? failure : nil)
            take()
        }
    }
}

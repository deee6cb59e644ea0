// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import TestSupport
import Testing

@Suite struct MatchLimitTests {
    @Test(arguments: busKinds)
    func `600 names observed on a bus limited to 512 match rules are all heard`(kind: BusKind) throws {
        let bus = try PrivateBus(kind, rules: 512)
        let (center, poster) = (bus.makeCenter(), bus.makeCenter())
        let heard = Recorder<NotifyName>()
        let names = try (0..<600).map { try NotifyName("com.example.limit.\($0)") }
        var observations: [NotifyCenter.Observation] = []
        for (index, name) in names.enumerated() {
            observations.append(try center.addObserver(for: name, timeout: .seconds(25)) { heard.append($0) })
            // Also while the rules are being changed.
            if index >= 500 { try poster.postOnceConnected(names[index - 500]) }
        }
        // Each of them has an observer of its own, and only what one observer hears has an order.
        func sorted(_ names: some Sequence<NotifyName>) -> [String] { names.map(\.string).sorted() }
        try #require(heard.wait(forCount: 100, timeout: .patience))
        #expect(sorted(heard.elements) == sorted(names[0..<100]))
        for name in names { try poster.postOnceConnected(name) }
        try poster.postOnceConnected("com.example.limit.600")
        try #require(heard.wait(forCount: 700, timeout: .patience))
        let hearsAll = sorted(heard.elements.dropFirst(100)) == sorted(names)
        #expect(hearsAll)

        // Few names again: one rule per name again, and nothing is missed in the meantime.
        for observation in observations.dropFirst(100) { observation.cancel() }
        for name in names { try poster.postOnceConnected(name) }
        try #require(heard.wait(forCount: 800, timeout: .patience))
        try poster.synchronize(timeout: .patience)
        try center.barrier(timeout: .patience)
        let hearsTheRest = sorted(heard.elements.dropFirst(700)) == sorted(names[0..<100])
        #expect(hearsTheRest)
        for observation in observations { observation.cancel() }
    }

    @Test(arguments: busKinds)
    func `many names registered at once survive the limit too`(kind: BusKind) throws {
        let bus = try PrivateBus(kind, rules: 128)
        let (center, poster) = (bus.makeCenter(), bus.makeCenter())
        let heard = Recorder<NotifyName>()
        let names = try (0..<300).map { try NotifyName("com.example.batch.\($0)") }
        let observation = try center.addObserver(matching: .names(names), timeout: .seconds(25)) { heard.append($0) }
        for name in names { try poster.postOnceConnected(name) }
        #expect(heard.wait(forCount: 300, timeout: .patience))
        let hearsAll = heard.elements == names
        #expect(hearsAll)
        observation.cancel()
    }

    /// Its rules match every post as well, and must not be mistaken for those that replace the others.
    @Test(arguments: busKinds)
    func `who observes everything, too, hears it when there are too many rules`(kind: BusKind) throws {
        let bus = try PrivateBus(kind, rules: 128)
        let poster = bus.makeCenter()
        for count in 120...129 {
            let center = bus.makeCenter()
            let (heard, all) = (Recorder<NotifyName>(), Recorder<NotifyName>())
            let names = try (0..<count).map { try NotifyName("com.example.limit.\($0)") }
            let some = try center.addObserver(matching: .names(names), timeout: .seconds(25)) { heard.append($0) }
            let every = try center.addObserver(matching: .everything, timeout: .seconds(25)) { all.append($0) }
            // By then the bus has removed all rules that it was to remove.
            try center.barrier(timeout: .patience)
            let posted: [NotifyName] = [names[0], names[count - 1], "com.example.other"]
            for name in posted { try poster.postOnceConnected(name) }
            try #require(all.wait(forCount: 3, timeout: .patience))
            #expect(heard.wait(forCount: 2, timeout: .patience) && all.elements == posted)
            some.cancel()
            every.cancel()
            try center.close(timeout: .patience)
        }
    }

    @Test(arguments: busKinds)
    func `with more names than rules the return of the bus is reported, and every name is heard again`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind, rules: 128)
        let changes = Recorder<String>()
        let center = NotifyCenter(bus: .address(bus.address)) { change in
            changes.append(change.kind == .connected ? "reconnected" : "disconnected")
        }
        let heard = Recorder<NotifyName>()
        let names = try (0..<300).map { try NotifyName("com.example.again.\($0)") }
        let observation = try center.addObserver(matching: .names(names), timeout: .seconds(25)) { heard.append($0) }
        try bus.restart()
        try #require(changes.wait(forCount: 2, timeout: .patience))
        #expect(changes.elements == ["disconnected", "reconnected"])
        #expect(center.statistics.reconnects == 1)
        let poster = bus.makeCenter()
        for name in names { try poster.postOnceConnected(name) }
        #expect(heard.wait(forCount: 300, timeout: .patience))
        let hearsAll = heard.elements == names
        #expect(hearsAll)
        observation.cancel()
    }

    @Test(arguments: [BusKind.daemon])
    func `a name that was refused can be registered again, also while its first observer stays`(kind: BusKind) throws {
        let bus = try PrivateBus(kind, rules: 0)
        let center = bus.makeCenter()
        let outcomes = Recorder<NotifyBusError.Code?>()
        @Sendable func record(_ result: Result<Void, NotifyBusError>) {
            if case .failure(let error) = result { outcomes.append(error.code) } else { outcomes.append(nil) }
        }
        let first = try center.startObserving("com.example.x", waitsForBus: false, using: { _ in }, whenLive: record)
        try #require(outcomes.wait(forCount: 1))
        let second = try center.startObserving("com.example.x", waitsForBus: false, using: { _ in }, whenLive: record)
        try #require(outcomes.wait(forCount: 2))
        #expect(outcomes.elements == [.limitExceeded, .limitExceeded])
        for observation in [first, second] { observation.cancel() }
    }

    @Test(arguments: [BusKind.daemon])
    func `a bus that allows no rule at all is an error with a sentence`(kind: BusKind) throws {
        let bus = try PrivateBus(kind, rules: 0)
        let error = try #require(throws: NotifyBusError.self) {
            try bus.makeCenter().addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in }
        }
        #expect(error.code == .limitExceeded)
        #expect(error.description.contains("max_match_rules_per_connection"))
    }
}

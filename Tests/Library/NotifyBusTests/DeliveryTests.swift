// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

@Suite struct DeliveryTests {
    @Test(arguments: busKinds)
    func `once addObserver has returned, every later post is heard in order, from itself and from others`(
        kind: BusKind
    ) throws {
        let total = isLongRun ? 100_000 : 20_000
        let bus = try PrivateBus(kind)
        let (observing, other) = (bus.makeCenter(), bus.makeCenter())
        let names = try (0..<10).map { try NotifyName("com.example.every.\($0)") }
        for poster in [observing, other] {
            let heard = Recorder<NotifyName>()
            let count = Counter()
            let observation = try observing.addObserver(matching: .names(names), timeout: .seconds(25)) {
                heard.append($0)
                count.add()
            }
            for start in stride(from: 0, to: total, by: 500) {
                for number in start..<start + 500 { try poster.postOnceConnected(names[number * 7 % 10]) }
                try #require(count.wait(for: start - 500, timeout: .patience))
            }
            try #require(count.wait(for: total, timeout: .patience))
            // The last callback counts when it has returned.
            try observing.barrier(timeout: .patience)
            observation.cancel()
            let elements = heard.elements
            #expect(elements.count == total)
            #expect(elements.indices.allSatisfy { elements[$0] == names[$0 * 7 % 10] })
        }
        #expect(observing.statistics.delivered == 2 * total)
        #expect(other.statistics.posted == total)
        #expect(observing.statistics.coalesced == 0 && other.statistics.coalesced == 0)
    }

    @Test(arguments: busKinds)
    func `two registrations of one name result in two callbacks`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let (first, second) = (Counter(), Counter())
        let one = try center.addObserver(for: "com.example.twice", timeout: .seconds(25)) { _ in first.add() }
        let two = try center.addObserver(for: "com.example.twice", timeout: .seconds(25)) { _ in second.add() }
        try center.postOnceConnected("com.example.twice")
        #expect(first.wait(for: 1) && second.wait(for: 1))
        one.cancel()
        try center.postOnceConnected("com.example.twice")
        #expect(second.wait(for: 2))
        try center.barrier(timeout: .patience)
        #expect(first.value == 1)
        two.cancel()
    }

    @Test(arguments: busKinds)
    func `a similar name is never heard`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let tail = String(repeating: ".tail", count: 60)
        let names = [
            "com.example.name", "com.example.a-b", "caf\u{e9}", "8yn0iYCKYHlIj4-BwPqk" + tail,
        ]
        let neighbours = [
            "com.example", "com.example.", "com.example.name.", "com.example.name.x", "com.example.nam",
            "com.example.names", "com.example.Name", "COM.EXAMPLE.NAME", "com.example.a_2db", "com.example.a_b",
            "cafe\u{301}", "cafe", "GReLUrM4wMqfg9yzV3KQ" + tail, "8yn0iYCKYHlIj4-BwPqk" + tail + "x",
        ]
        let heard = Recorder<NotifyName>()
        let observation = try center.addObserver(
            matching: .names(names.map { try NotifyName($0) }),
            timeout: .seconds(25)
        ) { heard.append($0) }
        let poster = bus.makeCenter()
        for neighbour in neighbours { try poster.postOnceConnected(NotifyName(neighbour)) }
        for name in names { try poster.postOnceConnected(NotifyName(name)) }
        // Posts of one poster arrive in order: once the last has arrived, a similar name would have arrived too.
        try #require(heard.wait(forCount: names.count, timeout: .patience))
        #expect(heard.elements.map { Array($0.string.utf8) } == names.map { Array($0.utf8) })
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `names that share a hash are distinguished when both are observed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let tail = String(repeating: "=", count: 280)
        let names = try ["8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"].map { try NotifyName($0 + tail) }
        let heard = (Recorder<NotifyName>(), Recorder<NotifyName>())
        let left = try center.addObserver(for: names[0], timeout: .seconds(25)) { heard.0.append($0) }
        let right = try center.addObserver(for: names[1], timeout: .seconds(25)) { heard.1.append($0) }
        for name in [names[0], names[1], names[1]] { try center.postOnceConnected(name) }
        #expect(heard.1.wait(forCount: 2, timeout: .patience))
        left.cancel()
        try center.postOnceConnected(names[1])
        #expect(heard.1.wait(forCount: 3, timeout: .patience))
        #expect(heard.0.elements == [names[0]])
        #expect(heard.1.elements == [names[1], names[1], names[1]])
        right.cancel()
    }

    @Test(arguments: busKinds)
    func `prefixes that differ only in their Unicode form are distinct`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = (Recorder<NotifyName>(), Recorder<NotifyName>())
        let names = try ["caf\u{e9}.open", "cafe\u{301}.open"].map { try NotifyName($0) }
        let left = try center.addObserver(matching: .prefix("caf\u{e9}."), timeout: .seconds(25)) { heard.0.append($0) }
        let right = try center.addObserver(matching: .prefix("cafe\u{301}."), timeout: .seconds(25)) {
            heard.1.append($0)
        }
        for name in [names[0], names[1], names[1]] { try center.postOnceConnected(name) }
        #expect(heard.1.wait(forCount: 2, timeout: .patience))
        #expect(heard.0.elements == [names[0]] && heard.1.elements == [names[1], names[1]])
        left.cancel()
        right.cancel()
    }

    @Test(arguments: busKinds)
    func `a prefix observer hears exactly the names with its prefix, once`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = Recorder<String>()
        let prefixes: [NotifyPrefix] = ["com.example.", "com.example.deep.", "odd name", "com.apple.sys", "org.notify"]
        let observation = try center.addObserver(
            matching: .any(of: prefixes.map { .prefix($0) }),
            timeout: .seconds(25)
        ) {
            heard.append($0.string)
        }
        let posts = [
            "com.example", "com.example.", "com.example.x", "com.example.deep.x", "com.exampl.x", "odd nam",
            "odd name.1", "com.apple.system.clock", "com.apple.other", "com.Example.x", "self.\(kind)",
            "org.notifybus.system.willsleep", "org.notifybus.session.lock", "end",
        ]
        let everything = Recorder<String>()
        let all = try center.addObserver(matching: .everything, timeout: .seconds(25)) { name in
            // The process has other tests, and their own names.
            if !name.string.hasPrefix("self.") || posts.contains(name.string) { everything.append(name.string) }
        }
        for name in posts { try center.postOnceConnected(NotifyName(name)) }
        try #require(everything.wait(forCount: posts.count, timeout: .patience))
        // Each observer is in order by itself.
        try center.barrier(timeout: .patience)
        #expect(
            heard.elements.sorted() == [
                "com.apple.system.clock", "com.example.", "com.example.deep.x", "com.example.x", "odd name.1",
                "org.notifybus.session.lock", "org.notifybus.system.willsleep",
            ]
        )
        #expect(everything.elements.sorted() == posts.sorted())
        observation.cancel()
        all.cancel()
    }

    @Test func `self names stay in the process, and need no bus`() throws {
        let nowhere = NotifyCenter(bus: .address("unix:path=/nonexistent/bus"))
        let elsewhere = NotifyCenter(bus: .address("unix:path=/nonexistent/other"))
        let heard = Recorder<String>()
        let observation = try nowhere.addObserver(for: "self.stay.changed", timeout: .seconds(25)) {
            heard.append($0.string)
        }
        let prefixed = try nowhere.addObserver(matching: .prefix("self.stay."), timeout: .seconds(25)) {
            heard.append($0.string)
        }
        try elsewhere.postOnceConnected("self.stay.changed")
        #expect(heard.wait(forCount: 2, timeout: .patience))
        observation.cancel()
        try nowhere.postOnceConnected("self.stay.changed")
        try nowhere.postOnceConnected("self.stay.other")
        #expect(heard.wait(forCount: 4, timeout: .patience))
        #expect(heard.elements == ["self.stay.changed", "self.stay.changed", "self.stay.changed", "self.stay.other"])
        prefixed.cancel()
    }

    @Test(arguments: busKinds)
    func `self names never reach the bus`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let eavesdropper = try RawBusClient(address: bus.address)
        try eavesdropper.addMatch("type='signal',member='Posted'")
        let center = bus.makeCenter()
        try center.postOnceConnected("self.secret")
        try center.postOnceConnected("com.example.public")
        let message = try nextSignal(eavesdropper)
        #expect(message.string == "com.example.public")
    }

    @Test(arguments: busKinds)
    func `an observer that ignores its center's posts hears those of all others`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let (center, other) = (bus.makeCenter(), bus.makeCenter())
        let names = ["com.example.own", "user.uid.\(geteuid()).own"]
        let (all, others) = (Recorder<String>(), Recorder<String>())
        let observations = [
            try center.addObserver(matching: .names(names.map { try NotifyName($0) }), timeout: .seconds(25)) {
                all.append($0.string)
            },
            try center.addObserver(
                matching: .any(of: [.prefix("com.example."), .prefix("user.uid.")]),
                ignoringOwnPosts: true,
                timeout: .seconds(25)
            ) {
                others.append($0.string)
            },
        ]
        for name in names {
            for _ in 0..<1_000 {
                try center.postOnceConnected(NotifyName(name))
                try other.postOnceConnected(NotifyName(name))
            }
        }
        for poster in [center, other] { try poster.synchronize(timeout: .patience) }
        // The bus is asked who posts a user's name, and the barrier may overtake posts that wait for that.
        #expect(all.wait(forCount: 4_000) && others.wait(forCount: 2_000))
        try center.barrier(timeout: .patience)
        for name in names {
            #expect(all.elements.count { $0 == name } == 2_000, "\(name)")
            #expect(others.elements.count { $0 == name } == 1_000, "\(name)")
        }
        // Also after the bus has given the center another unique name.
        try bus.restart()
        let isBack = waitUntil(timeout: .patience) {
            try? center.synchronize(timeout: .seconds(1))
            try? other.postOnceConnected("com.example.back")
            return others.elements.contains("com.example.back")
        }
        try #require(isBack)
        let before = others.elements.count { $0 == "com.example.own" }
        try center.postOnceConnected("com.example.own")
        try center.postOnceConnected("com.example.end")
        try other.synchronize(timeout: .patience)
        try center.synchronize(timeout: .patience)
        try center.barrier(timeout: .patience)
        #expect(others.elements.count { $0 == "com.example.own" } == before)
        for observation in observations { observation.cancel() }
    }
}

/// The next message that is a post.
func nextSignal(_ client: RawBusClient) throws -> RawMessage {
    while true {
        let message = try client.readMessage(timeout: .patience)
        if message.kind == .signal, message.member == "Posted" { return message }
    }
}

// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import TestSupport
import Testing

/// The promises when a living bus closes a connection.
@Suite struct CutOffTests {
    @Test(arguments: busKinds)
    func `an observer that the bus disconnects hears each of its names once afterwards`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address)
        defer { relay.close() }
        let changes = Recorder<NotifyCenter.ConnectionChange>()
        let center = NotifyCenter(bus: .address(relay.address)) { changes.append($0) }
        let heard = Recorder<String>()
        let names = (0..<20).map { "com.example.cut.\($0)" }
        let several = try center.addObserver(matching: .names(names.map { try NotifyName($0) }), timeout: .seconds(25))
        { heard.append($0.string) }
        let prefix = try center.addObserver(matching: .prefix("net.example."), timeout: .seconds(25)) {
            heard.append($0.string)
        }
        let twice = try center.addObserver(for: NotifyName(names[0]), timeout: .seconds(25)) {
            heard.append("again " + $0.string)
        }
        for round in 1...3 {
            relay.cutAll()
            try #require(changes.wait(forCount: 2 * round, timeout: .patience))
            #expect(changes.elements.last == .connected)
            // Everything delivered because of the loss comes before this.
            try bus.makeCenter().postOnceConnected("net.example.end")
            try #require(heard.wait(timeout: .patience) { $0.filter { $0 == "net.example.end" }.count == round })
            #expect(center.statistics.forcedDisconnects == round)
        }
        // Another observer may still be at it when this one has heard the end.
        try center.barrier(timeout: .patience)
        #expect(heard.elements.filter { $0 != "net.example.end" }.count == 3 * 21)
        for name in names { #expect(heard.elements.filter { $0 == name }.count == 3) }
        #expect(heard.elements.filter { $0 == "again " + names[0] }.count == 3)
        for observation in [several, prefix, twice] { observation.cancel() }
    }

    @Test(arguments: busKinds)
    func `a name that is posted while the observer is disconnected is heard`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address)
        defer { relay.close() }
        let (center, poster) = (NotifyCenter(bus: .address(relay.address)), bus.makeCenter())
        let count = Counter()
        let observation = try center.addObserver(for: "com.example.missed", timeout: .seconds(25)) { _ in count.add() }
        for _ in 0..<20 {
            let before = count.value
            relay.cutAll()
            // While reconnecting the observer may hear this or not; a name that it misses is delivered afterwards.
            try poster.postOnceConnected("com.example.missed")
            try #require(count.wait(for: before + 1))
            try #require(waitUntil { (try? center.barrier(timeout: .seconds(5))) != nil })
        }
        observation.cancel()
    }

    /// The connection of a program is cut when an agent parks it.
    @Test(arguments: busKinds)
    func `what is being registered when the connection is cut is registered on the next one`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address)
        defer { relay.close() }
        let (center, poster) = (NotifyCenter(bus: .address(relay.address)), bus.makeCenter())
        let count = Counter()
        // Nothing else is observed, for which the connection would be made again.
        try center.addObserver(for: "com.example.first", timeout: .seconds(25)) { _ in }.cancel()
        for round in 1...20 {
            let outcome = Recorder<Result<NotifyCenter.Observation, any Error>>()
            relay.hold()
            startThread {
                outcome.append(
                    Result {
                        try center.addObserver(for: "com.example.next", timeout: .seconds(25)) { _ in count.add() }
                    }
                )
            }
            relay.cutAll()
            relay.resume()
            try #require(outcome.wait(forCount: 1, timeout: .patience))
            let observation = try #require(outcome.elements.first).get()
            try poster.postOnceConnected("com.example.next")
            try #require(count.wait(for: round))
            observation.cancel()
        }
    }

    @Test(arguments: busKinds)
    func `nothing is delivered just because another bus has replaced the previous one`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let changes = Recorder<NotifyCenter.ConnectionChange>()
        let center = bus.makeCenter { changes.append($0) }
        let heard = Recorder<String>()
        let observation = try center.addObserver(for: "com.example.back", timeout: .seconds(25)) {
            heard.append($0.string)
        }
        bus.kill()
        try bus.restart()
        try #require(changes.wait(forCount: 2, timeout: .patience))
        try center.barrier(timeout: .patience)
        #expect(heard.count == 0)
        #expect(center.statistics.forcedDisconnects == 0 && center.statistics.reconnects == 1)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `a poster that the bus disconnects continues`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address)
        defer { relay.close() }
        let (poster, observing) = (NotifyCenter(bus: .address(relay.address)), bus.makeCenter())
        let heard = Recorder<String>()
        let observation = try observing.addObserver(matching: .prefix("com.example."), timeout: .seconds(25)) {
            heard.append($0.string)
        }
        for round in 0..<5 {
            try poster.postOnceConnected(NotifyName("com.example.\(round)"))
            try poster.synchronize(timeout: .patience)
            relay.cutAll()
        }
        #expect(heard.wait(forCount: 5))
        #expect(heard.elements == (0..<5).map { "com.example.\($0)" })
        observation.cancel()
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

@Suite struct ReconnectTests {
    @Test(arguments: busKinds)
    func `observers hear posts again after the bus was killed and restarted, and it is counted`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let changes = Recorder<NotifyCenter.ConnectionChange>()
        let center = bus.makeCenter { changes.append($0) }
        let heard = Recorder<String>()
        let names = try center.addObserver(for: "com.example.back", timeout: .seconds(25)) { heard.append($0.string) }
        let prefix = try center.addObserver(matching: .prefix("net.example."), timeout: .seconds(25)) {
            heard.append($0.string)
        }
        try center.postOnceConnected("com.example.back")
        try #require(heard.wait(forCount: 1, timeout: .patience))

        for round in 1...3 {
            bus.kill()
            try #require(changes.wait(forCount: round * 2 - 1, timeout: .patience))
            let error = try #require(throws: NotifyBusError.self) { try center.postOnceConnected("com.example.back") }
            #expect(error.code == .noBus || error.code == .disconnected)
            let refusal = try #require(throws: NotifyBusError.self) {
                try center.addObserver(for: "com.example.new", timeout: .seconds(25)) { _ in }
            }
            #expect(refusal.code == .disconnected)
            try bus.restart()
            try #require(changes.wait(forCount: round * 2, timeout: .patience))
            #expect(changes.elements.last == .connected)
            #expect(center.statistics.reconnects == round)
            try center.postOnceConnected("com.example.back")
            try bus.makeCenter().postOnceConnected("net.example.back")
            try #require(heard.wait(forCount: 1 + round * 2, timeout: .patience))
        }
        #expect(heard.elements.count == 7)
        names.cancel()
        prefix.cancel()
    }

    @Test(arguments: busKinds)
    func `a poster reconnects by itself`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let poster = bus.makeCenter()
        try poster.postOnceConnected("com.example.a")
        bus.kill()
        try bus.restart()
        let observing = bus.makeCenter()
        let count = Counter()
        let observation = try observing.addObserver(for: "com.example.b", timeout: .seconds(25)) { _ in count.add() }
        try poster.postOnceConnected("com.example.b")
        #expect(count.wait(for: 1))
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `posts that are queued when the bus dies are made on the next one`(kind: BusKind) throws {
        let (first, second) = (try PrivateBus(kind), try PrivateBus(kind))
        // An address with two buses, the first of which is created when everything else is ready.
        let link = first.socketPath + "-next"
        let poster = NotifyCenter(bus: .address("\(first.address)-next;\(first.address)"))
        let observing = second.makeCenter()
        let heard = Recorder<NotifyName>()
        let observation = try observing.addObserver(matching: .prefix("com.example."), timeout: .seconds(25)) {
            heard.append($0)
        }
        try poster.postOnceConnected("com.example.first")
        try poster.synchronize(timeout: .patience)
        first.stop()
        let names = try (0..<2_000).map { try NotifyName("com.example.waiting.\($0)") }
        for name in names { try poster.postOnceConnected(name) }
        let waiting = poster.waitingPosts
        #expect(waiting > 0)
        try #require(symlink(second.socketPath, link) == 0)
        defer { unlink(link) }
        first.kill()
        try #require(heard.wait(timeout: .patience) { $0.last == names.last })
        #expect(heard.elements.count >= waiting)
        #expect(heard.elements.suffix(waiting).elementsEqual(names.suffix(waiting)))
        #expect(poster.statistics.lost == 0)
        observation.cancel()
    }
}

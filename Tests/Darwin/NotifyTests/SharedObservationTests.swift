// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyTokens
import TestSupport
import Testing

/// A name that is registered with notify(3), which reports that there is no bus, and for Core Foundation's center, which
/// waits for one.
@Suite struct SharedObservationTests {
    private func observe(_ room: NotifyRoom, _ name: String, _ heard: Counter) throws -> (Int32, NotifyBusError?) {
        let failed: @Sendable (NotifyBusError) -> Void = { Issue.record($0) }
        let (token, delay) = try room.engine.observe(
            NotifyName(name),
            { registration in registration.run { heard.add() } },
            failed: failed
        )
        return (token, delay)
    }

    @Test(arguments: busKinds)
    func `both hear each post once, their own and others', and either may go first`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        for goesFirst in [true, false] {
            let heard = Counter()
            let (observing, delay) = try observe(room, "com.example.a", heard)
            #expect(delay == nil)
            let (token, descriptor) = try room.registerPipe("com.example.a")
            for _ in 1...3 {
                try room.engine.post("com.example.a")
                try room.post("com.example.a")
            }
            #expect(heard.value == 6 && tokens(in: descriptor) == Array(repeating: token, count: 6))
            try room.engine.cancel(goesFirst ? observing : token)
            try room.post("com.example.a")
            #expect(heard.value == (goesFirst ? 6 : 7))
            if goesFirst { #expect(tokens(in: descriptor) == [token]) }
            try room.engine.cancel(goesFirst ? token : observing)
        }
    }

    @Test(arguments: busKinds)
    func `without a bus one waits and the other is told, and later both hear each post once`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        room.bus.kill()
        let heard = Counter()
        let gone = Counter()
        #expect(try observe(room, "com.example.a", heard).1?.code == .noBus)
        let (cancelled, _) = try observe(room, "com.example.b", gone)
        try room.engine.cancel(cancelled)
        #expect(status { _ = try room.register("com.example.a") } == .serverNotFound)
        #expect(try observe(room, "com.example.a", heard).1 != nil)
        try room.bus.restart()
        #expect(
            try waitUntil {
                try room.other.postOnceConnected("com.example.a")
                return heard.value > 0
            }
        )
        var pipe: (token: Int32, descriptor: Int32) = (0, -1)
        #expect(
            waitUntil {
                guard let new = try? room.registerPipe("com.example.a") else { return false }
                pipe = new
                return true
            }
        )
        try room.settle()
        let before = heard.value
        _ = tokens(in: pipe.descriptor)
        try room.post("com.example.a", "com.example.b")
        try room.engine.post("com.example.a")
        try room.settle()
        #expect(heard.value == before + 4)
        #expect(tokens(in: pipe.descriptor) == [pipe.token, pipe.token])
        #expect(gone.value == 0)
    }

    @Test(arguments: busKinds)
    func `a post comes once from the bus for all of them`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let heard = Counter()
        for _ in 0..<1_000 {
            _ = try observe(room, "com.example.a", heard)
            _ = try room.register("com.example.a")
        }
        let before = room.center.statistics.delivered
        try room.post("com.example.a")
        #expect(heard.value == 1_000 && room.center.statistics.delivered == before + 1)
    }
}

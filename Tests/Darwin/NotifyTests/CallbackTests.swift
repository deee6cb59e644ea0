// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyTokens
import Synchronization
import TestSupport
import Testing

/// Tokens whose notifications call a C function, on a thread of the library.
@Suite
struct CallbackTests {
    @Test(arguments: busKinds)
    func `a callback gets its token, once for each own post and others', and not on the posting thread`(
        kind: BusKind
    ) throws {
        let room = try NotifyRoom(kind)
        let heard = Recorder<Int32>()
        let poster = pthread_self()
        let names = ["com.example.a", "com.example.b"]
        let tokens = try names.map { name in
            try room.registerCallback(name) { heard.append(pthread_equal(pthread_self(), poster) != 0 ? -1 : $0) }
        }
        for _ in 0..<100 { for name in names { try room.engine.post(name) } }
        try room.settle()
        // Each token has a queue of its own.
        let once = tokens.flatMap { Array(repeating: $0, count: 100) }
        #expect(heard.elements.sorted() == once)
        for _ in 0..<100 { for name in names { try room.other.postOnceConnected(NotifyName(name)) } }
        try room.settle()
        #expect(heard.elements.sorted() == (once + once).sorted())
    }

    /// One registration after another, while posts arrive from this program and from another one.
    @Test(arguments: busKinds)
    func `nothing is called after cancel has returned`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let isOver = Atomic(false)
        let finished = Counter()
        let late = Counter()
        startThread {
            while !isOver.load(ordering: .relaxed) {
                _ = status { try room.engine.post("com.example.a") }
                try? room.other.postOnceConnected("com.example.a")
                usleep(100)
            }
            finished.add()
        }
        for round in 0..<(isLongRun ? 1_000 : 50) {
            let calls = Counter()
            let isCancelled = Atomic(false)
            let token = try room.registerCallback("com.example.a") { _ in
                calls.add()
                if round % 3 == 2 { usleep(200) }
                if isCancelled.load(ordering: .acquiring) { late.add() }
            }
            #expect(calls.wait(for: round % 3))
            try room.engine.cancel(token)
            isCancelled.store(true, ordering: .releasing)
        }
        isOver.store(true, ordering: .relaxed)
        #expect(finished.wait(for: 1))
        try room.settle()
        #expect(late.value == 0)
    }

    @Test(arguments: busKinds)
    func `a slow callback delays callbacks, and no check, descriptor, queue or registration`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let begun = Counter()
        let mayEnd = Counter()
        defer { mayEnd.add() }
        _ = try room.registerCallback("com.example.slow") { _ in
            begun.add()
            _ = mayEnd.wait(for: 1)
        }
        let calls = Counter()
        _ = try room.registerCallback("com.example.a") { _ in calls.add() }
        let (piped, descriptor) = try room.registerPipe("com.example.a")
        let queued = Counter()
        _ = try room.register("com.example.a", .queue { _ in queued.add() })
        let check = try room.register("com.example.a")
        _ = room.engine.check(check)
        // So many that the thread that reads must not notify them: they wait as callbacks do, and lose nothing.
        let many = try (0..<20).map { _ in try room.register("com.example.many") }
        for token in many { _ = room.engine.check(token) }

        try room.other.postOnceConnected("com.example.slow")
        #expect(begun.wait(for: 1))
        for name in ["com.example.many", "com.example.a"] { try room.other.postOnceConnected(NotifyName(name)) }
        #expect(queued.wait(for: 1))
        #expect(tokens(in: descriptor) == [piped])
        #expect(room.engine.check(check) == true)
        // Its own posts, and new names.
        try room.engine.post("com.example.a")
        #expect(tokens(in: descriptor) == [piped] && room.engine.check(check) == true)
        let (other, late) = try room.registerPipe("com.example.b")
        try room.other.postOnceConnected("com.example.b")
        #expect(waitUntil { tokens(in: late) == [other] })
        try room.engine.cancel(other)
        #expect(calls.value == 0 && begun.value == 1)

        mayEnd.add()
        #expect(calls.wait(for: 2))
        try room.settle()
        #expect(calls.value == 2)
        for token in many { #expect(room.engine.check(token) == true) }
    }

    @Test(arguments: anyBusKind())
    func `while a callback is slow, 4,096 notifications of each are queued, and further ones coalesced`(
        kind: BusKind
    ) throws {
        let room = try NotifyRoom(kind)
        let begun = Counter()
        let mayEnd = Counter()
        defer { mayEnd.add() }
        _ = try room.registerCallback("com.example.slow") { _ in
            begun.add()
            _ = mayEnd.wait(for: 1)
        }
        let calls = Counter()
        _ = try room.registerCallback("com.example.a") { _ in calls.add() }
        try room.engine.post("com.example.slow")
        #expect(begun.wait(for: 1))
        for _ in 0..<5_000 { try room.engine.post("com.example.a") }
        mayEnd.add()
        try room.settle()
        #expect(calls.value == 4_096)
        try room.engine.post("com.example.a")
        #expect(calls.wait(for: 4_097))
    }

    @Test(arguments: busKinds)
    func `a suspended token's callback is called once after the resume, also for what was queued`(kind: BusKind) throws
    {
        let room = try NotifyRoom(kind)
        let begun = Counter()
        let mayEnd = Counter()
        defer { mayEnd.add() }
        _ = try room.registerCallback("com.example.slow") { _ in
            begun.add()
            _ = mayEnd.wait(for: 1)
        }
        let calls = Counter()
        let token = try room.registerCallback("com.example.a") { _ in calls.add() }
        try room.other.postOnceConnected("com.example.slow")
        #expect(begun.wait(for: 1))
        try room.engine.post("com.example.a")
        try room.engine.suspend(token)
        mayEnd.add()
        try room.post("com.example.a", "com.example.a")
        #expect(calls.value == 0)
        #expect(room.engine.check(token) == true)
        try room.engine.resume(token)
        try room.settle()
        #expect(calls.value == 1)
        try room.post("com.example.a")
        #expect(calls.value == 2)
    }

    @Test(arguments: busKinds)
    func `in the background no callback is called`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let agent = try start(productPath("notify-agent"), ["--address", room.bus.address, "-q"], output: .null)
        defer { agent.send(signal: SIGKILL) }
        let calls = Counter()
        _ = try room.registerCallback("com.example.a") { _ in calls.add() }
        func set(_ state: String) throws -> Bool {
            let arguments = ["--address", room.bus.address, state, "pid:\(getpid())"]
            return try waitUntil { try run(productPath("notify-lifecycle"), arguments).status == 0 }
        }
        #expect(try set("background"))
        try room.engine.post("com.example.a")
        try room.post("com.example.a")
        #expect(calls.value == 0)
        #expect(try set("foreground"))
        try room.settle()
        #expect(calls.value == 0)
        try room.engine.post("com.example.a")
        try room.post("com.example.a")
        #expect(calls.value == 2)
    }

    @Test func `without a bus a callback is called for names that stay in the process`() throws {
        let engine = TokenEngine(center: NotifyCenter(bus: .address("unix:path=/nonexistent/bus")))
        defer { engine.close() }
        let calls = Counter()
        let context = CallbackContext { _ in calls.add() }
        var token: Int32 = 0
        #expect(
            status { try engine.register("com.example.a", .callback(context.function), token: &token) }
                == .serverNotFound
        )
        #expect(token == -1)
        try engine.register("self.callback", .callback(context.function), token: &token)
        try engine.post("self.callback")
        #expect(calls.wait(for: 1))
        try engine.cancel(token)
        withExtendedLifetime(context) {}
    }
}

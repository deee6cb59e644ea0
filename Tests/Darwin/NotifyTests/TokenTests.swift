// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

@testable import NotifyTokens

/// Tokens: what they hear, and when it ends.
@Suite
struct TokenTests {
    @Test(arguments: busKinds)
    func `the first check says yes, and each token has its own history`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let one = try room.register("com.example.a")
        let two = try room.register("com.example.a")
        #expect(room.engine.check(one) == true && room.engine.check(one) == false)
        try room.post("com.example.a")
        #expect(room.engine.check(one) == true && room.engine.check(one) == false)
        #expect(room.engine.check(two) == true && room.engine.check(two) == false)
        try room.post("com.example.b")
        #expect(room.engine.check(one) == false && room.engine.check(two) == false)
    }

    @Test(arguments: busKinds)
    func `the poster hears its own posts`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let (token, descriptor) = try room.registerPipe("com.example.a")
        try room.engine.post("com.example.a")
        try room.settle()
        #expect(tokens(in: descriptor) == [token])
    }

    @Test(arguments: busKinds)
    func `a check sees this process's earlier posts, every time and once`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let token = try room.register("com.example.a")
        _ = room.engine.check(token)
        for round in 0..<1_000 {
            try room.engine.post("com.example.a")
            try room.engine.cancel(room.register("com.example.any.\(round % 10)"))
            #expect(room.engine.check(token) == true, "\(round)")
        }
        // Nothing is seen a second time when the bus delivers it.
        try room.settle()
        #expect(room.engine.check(token) == false)
        // However the process posted it.
        try room.center.postOnceConnected("com.example.a")
        #expect(room.engine.check(token) == true)
    }

    @Test func `a check sees a post that stays in the process at once, and once`() async {
        // In a process of its own, because other tests post such names as well, and observe all.
        await #expect(processExitsWith: .success) {
            let engine = TokenEngine(center: NotifyCenter(bus: .address("unix:path=/nonexistent/bus")))
            var token: Int32 = 0
            try engine.register("self.check", .none, token: &token)
            _ = engine.check(token)
            for _ in 0..<1_000 {
                try engine.post("self.check")
                guard engine.check(token) == true, engine.check(token) == false else { exit(1) }
            }
        }
    }

    @Test(arguments: busKinds)
    func `a suspended token is notified once, after as many resumes as suspends`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let (token, descriptor) = try room.registerPipe("com.example.a")
        #expect(room.engine.check(token) == true)
        try room.engine.suspend(token)
        try room.engine.suspend(token)
        try room.post("com.example.a", "com.example.a", "com.example.a")
        #expect(room.engine.check(token) == true)
        try room.engine.resume(token)
        #expect(tokens(in: descriptor).isEmpty)
        try room.engine.resume(token)
        #expect(tokens(in: descriptor) == [token])
        // Nothing came the next time.
        try room.engine.suspend(token)
        try room.engine.resume(token)
        try room.engine.resume(token)
        try room.engine.suspend(token)
        #expect(tokens(in: descriptor).isEmpty)
        try room.post("com.example.a")
        #expect(tokens(in: descriptor).isEmpty)
        try room.engine.resume(token)
        #expect(tokens(in: descriptor) == [token])
        try room.post("com.example.a", "com.example.a")
        #expect(tokens(in: descriptor) == [token, token])
    }

    @Test(arguments: busKinds)
    func `nothing is delivered after cancel, not even queued notifications`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let queue = Recorder<Registration>()
        let token = try room.register("com.example.a", .queue { queue.append($0) })
        let (piped, descriptor) = try room.registerPipe("com.example.a")
        // Another test may reuse the number once it is closed here.
        let copy = dup(descriptor)
        defer { close(copy) }
        try room.post("com.example.a", "com.example.a")
        #expect(tokens(in: copy) == [piped, piped])
        try #require(queue.count == 2)
        var runs = 0
        queue.elements[0].run { runs += 1 }
        try room.engine.cancel(token)
        try room.engine.cancel(piped)
        queue.elements[1].run { runs += 1 }
        #expect(runs == 1)
        try room.post("com.example.a")
        #expect(queue.count == 2)
        var byte: UInt8 = 0
        #expect(read(copy, &byte, 1) == 0)
        for dead in [token, piped] {
            #expect(status { try room.engine.cancel(dead) } == .invalidToken)
            #expect(status { try room.engine.suspend(dead) } == .invalidToken)
            #expect(room.engine.check(dead) == nil && !room.engine.isValid(dead))
            #expect(status { _ = try room.engine.posts(dead) } == .invalidToken)
        }
    }

    @Test(arguments: busKinds)
    func `notifications queued when their token is suspended are delivered after the resume`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let queue = Recorder<Registration>()
        let token = try room.register("com.example.a", .queue { queue.append($0) })
        try room.post("com.example.a", "com.example.a")
        try room.engine.suspend(token)
        var runs = 0
        for registration in queue.elements { registration.run { runs += 1 } }
        #expect(runs == 0)
        try room.engine.resume(token)
        try #require(queue.count == 3)
        queue.elements[2].run { runs += 1 }
        #expect(runs == 1)
    }

    @Test(arguments: busKinds)
    func `a name that is registered again after its last token is heard again`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        // More names than are kept temporarily, each three times.
        for round in 0..<3 {
            for number in 0..<100 {
                let token = try room.register("com.example.\(number)")
                _ = room.engine.check(token)
                if number % 7 == round {
                    try room.post("com.example.\(number)")
                    #expect(room.engine.check(token) == true)
                }
                try room.engine.cancel(token)
            }
        }
    }

    @Test(arguments: busKinds)
    func `a name without tokens is soon unsubscribed`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let token = try room.register("com.example.a")
        try room.engine.cancel(token)
        // A post ends it at once, because only this name would wake the program.
        try room.post("com.example.a")
        let before = room.center.statistics.delivered
        try room.post("com.example.a")
        #expect(room.center.statistics.delivered == before)
        let again = try room.register("com.example.a")
        try room.engine.cancel(again)
        let delivered = room.center.statistics.delivered
        // Without a post, time does.
        #expect(waitUntil { room.engine.isAtRest })
        try room.post("com.example.a")
        #expect(room.center.statistics.delivered == delivered)
    }

    @Test(arguments: busKinds)
    func `a name whose token is cancelled while it is being registered is unsubscribed too`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let token = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
        defer { token.deallocate() }
        // As a handler may that a post calls before the registration returns.
        try room.engine.register("com.example.a", .none, token: token) {
            status { try room.engine.cancel(token.pointee) } == .ok
        }
        #expect(!room.engine.isValid(token.pointee))
        try room.post("com.example.a")
        let before = room.center.statistics.delivered
        try room.post("com.example.a")
        #expect(room.center.statistics.delivered == before)
        let again = try room.register("com.example.a")
        _ = room.engine.check(again)
        try room.post("com.example.a")
        #expect(room.engine.check(again) == true)
    }

    @Test func `tokens are never reused, and only live ones take memory`() throws {
        let room = try NotifyRoom(.daemon)
        var living = try (0..<1_000).map { _ in try room.register("self.kept") }
        var last = living.max() ?? 0
        for _ in 0..<20_000 {
            let token = try room.register("self.kept")
            #expect(token > last)
            last = token
            try room.engine.cancel(token)
        }
        #expect(living.allSatisfy { room.engine.isValid($0) })
        #expect(last < 60_000)
        #expect(room.engine.table.size <= 4_096)
        while let token = living.popLast() { try room.engine.cancel(token) }
    }

    @Test func `invalid names are refused`() throws {
        let room = try NotifyRoom(.daemon)
        var token: Int32 = 0
        for bad in ["", String(repeating: "x", count: 512)] {
            #expect(status { try room.engine.post(bad) } == .invalidName)
            #expect(status { try room.engine.register(bad, .none, token: &token) } == .invalidName)
            #expect(token == -1)
        }
        #expect(status { try room.engine.post(nil) } == .invalidName)
        let bytes: [CChar] = [-1, 0]
        #expect(status { try room.engine.post(bytes) } == .invalidName)
        #expect(status { try room.engine.register("com.example.a", .none, token: nil) } == .nullInput)
        #expect(status { try room.engine.post(String(repeating: "x", count: 511)) } == .ok)
        let foreign = "user.uid.\(geteuid() + 1).x"
        if geteuid() != 0 { #expect(status { try room.engine.post(foreign) } == .notAuthorized) }
    }

    @Test func `without a bus the status says so, and self names work`() throws {
        let engine = TokenEngine(center: NotifyCenter(bus: .address("unix:path=/nonexistent/bus")))
        var token: Int32 = 0
        #expect(status { try engine.post("com.example.a") } == .serverNotFound)
        #expect(status { try engine.register("com.example.a", .none, token: &token) } == .serverNotFound)
        #expect(token == -1)
        try engine.register("self.a", .none, token: &token)
        #expect(engine.check(token) == true && engine.check(token) == false)
        try engine.post("self.a")
        #expect(waitUntil { engine.check(token) == true })
        try engine.setState(7, of: token)
        #expect(try engine.state(of: token) == 7)
    }

    @Test func `while disabled, only self names work`() throws {
        let room = try NotifyRoom(.daemon)
        let token = try room.register("com.example.a")
        room.engine.setOptions(0x0800_0000)
        #expect(status { try room.engine.post("com.example.a") } == .disabled)
        #expect(status { _ = try room.register("com.example.b") } == .disabled)
        #expect(status { _ = try room.engine.state(of: token) } == .disabled)
        #expect(status { _ = try room.register("self.a") } == .ok)
        #expect(room.engine.check(token) == true)
        room.engine.setOptions(0x0400_0000)
        try room.engine.post("com.example.a")
        try room.settle()
        #expect(room.engine.check(token) == true)
        #expect(status { try room.engine.cancel(token) } == .ok)
    }

    @Test(arguments: busKinds)
    func `registrations outlive the bus`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let token = try room.register("com.example.a")
        _ = room.engine.check(token)
        try room.bus.restart()
        let isBack = waitUntil(timeout: .patience) {
            _ = status { try room.engine.post("com.example.a") }
            return room.engine.check(token) == true
        }
        #expect(isBack)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyTokens
import TestSupport
import Testing

/// Delivery through descriptors.
@Suite
struct PipeTests {
    @Test(arguments: busKinds)
    func `a descriptor that nobody reads loses no token, and holds nobody up`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let (first, descriptor) = try room.registerPipe("com.example.0")
        var names = [first: 0]
        for number in 1..<50 {
            names[try room.registerPipe("com.example.\(number)", reusing: descriptor).token] = number
        }
        let witness = try room.register("com.example.0")
        // A pipe takes 16,384 tokens. The first name fills it; later tokens don't fit.
        let center = room.other
        for _ in 0..<40 {
            for _ in 0..<500 { try center.postOnceConnected("com.example.0") }
            try room.settle()
        }
        for number in 1..<50 { try center.postOnceConnected(NotifyName("com.example.\(number)")) }
        try room.settle()
        #expect(room.engine.check(witness) == true)
        var counts: [Int: Int] = [:]
        let isComplete = waitUntil {
            for token in tokens(in: descriptor) { counts[names[token] ?? -1, default: 0] += 1 }
            return counts.count == 50
        }
        #expect(isComplete)
        #expect(counts[-1] == nil && (1..<50).allSatisfy { counts[$0] == 1 })
        #expect(counts[0].map { $0 >= 16_384 && $0 < 20_000 } == true)
        // And it continues one by one.
        try room.post("com.example.7", "com.example.7")
        #expect(tokens(in: descriptor).map { names[$0] } == [7, 7])
    }

    @Test func `the descriptor is closed with its last token`() throws {
        let room = try NotifyRoom(.daemon)
        let (one, descriptor) = try room.registerPipe("self.a")
        let two = try room.registerPipe("self.b", reusing: descriptor)
        #expect(two.descriptor == descriptor)
        #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
        try room.engine.cancel(one)
        try room.engine.post("self.b")
        #expect(waitUntil { nextToken(descriptor) == two.token })
        // The write end is unknown here: the pipe is gone when reading reaches its end.
        let copy = dup(descriptor)
        defer { close(copy) }
        try room.engine.cancel(two.token)
        var byte: UInt8 = 0
        #expect(read(copy, &byte, 1) == 0)
    }

    @Test func `only the library's own descriptors can be reused`() throws {
        let room = try NotifyRoom(.daemon)
        for strange in [0, -1, 9_999] as [Int32] {
            #expect(status { _ = try room.registerPipe("self.a", reusing: strange) } == .invalidFile)
        }
        let (token, descriptor) = try room.registerPipe("self.a")
        try room.engine.cancel(token)
        #expect(status { _ = try room.registerPipe("self.a", reusing: descriptor) } == .invalidFile)
        var number: Int32 = 0
        var other: Int32 = 0
        #expect(
            status { try room.engine.register("self.a", descriptor: nil, flags: 0, token: &number) } == .invalidFile
        )
        #expect(status { try room.engine.register(nil, descriptor: nil, flags: 0, token: &number) } == .invalidName)
        // As on Darwin, unknown flags have no effect.
        #expect(status { try room.engine.register("self.a", descriptor: &other, flags: 2, token: &number) } == .ok)
    }

    @Test func `a program that has closed the descriptor itself survives, and loses no other file`() async {
        // In a process of its own, because otherwise another test might reuse the number at once.
        await #expect(processExitsWith: .success) {
            let engine = TokenEngine(center: NotifyCenter(bus: .address("unix:path=/nonexistent/bus")))
            var token: Int32 = 0
            var descriptor: Int32 = -1
            try engine.register("self.a", descriptor: &descriptor, flags: 0, token: &token)
            close(descriptor)
            try engine.suspend(token)
            try engine.post("self.a")
            #expect(waitUntil { (try? engine.posts(token)) == 2 })
            // On this thread, where SIGPIPE would be fatal.
            try engine.resume(token)
            // The number now belongs to something else.
            let file = open("/dev/null", O_RDONLY)
            dup2(file, descriptor)
            try engine.cancel(token)
            #expect(fcntl(descriptor, F_GETFD) >= 0)
        }
    }

    @Test func `a pipe whose number another one has taken is closed with its last token, and not reused`() async {
        await #expect(processExitsWith: .success) {
            let engine = TokenEngine(center: NotifyCenter(bus: .address("unix:path=/nonexistent/bus")))
            func register(_ name: String, _ descriptor: inout Int32, flags: Int32 = 0) throws -> Int32 {
                var token: Int32 = 0
                try engine.register(name, descriptor: &descriptor, flags: flags, token: &token)
                return token
            }
            var (one, two): (Int32, Int32) = (-1, -1)
            let first = try register("self.a", &one)
            // Ends when the library closes its end.
            let copy = dup(one)
            _ = fcntl(copy, F_SETFL, O_NONBLOCK)
            close(one)
            #expect(status { _ = try register("self.b", &one, flags: 1) } == .invalidFile)
            let second = try register("self.b", &two)
            #expect(two == one)
            let third = try register("self.c", &two, flags: 1)
            try engine.cancel(first)
            var byte: UInt8 = 0
            #expect(read(copy, &byte, 1) == 0)
            try engine.cancel(second)
            try engine.post("self.c")
            #expect(waitUntil { nextToken(two) == third })
            try engine.cancel(third)
            #expect(fcntl(two, F_GETFD) < 0)
        }
    }
}

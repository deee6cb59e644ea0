// SPDX-License-Identifier: Apache-2.0

import NotifyTokens
import TestSupport
import Testing

/// What a token's kind has to do with what it may ask, and signals, as in Darwin's code.
@Suite struct KindTests {
    @Test(arguments: busKinds)
    func `only a token for checks can be peeked at, or one whose name stays in the process`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let check = try room.register("com.example.a")
        let before = try room.engine.posts(check)
        try room.post("com.example.a")
        #expect(try room.engine.posts(check) == before + 1)
        let others = try [
            room.register("com.example.a", .plain), room.register("com.example.a", .signal(0)),
            room.register("com.example.a", .queue { _ in }), room.registerPipe("com.example.a").token,
        ]
        for token in others {
            #expect(status { _ = try room.engine.posts(token) } == .invalidRequest)
            // They can be checked all the same.
            #expect(room.engine.check(token) == true)
        }
        let own = try [room.register("self.a", .plain), room.registerPipe("self.a").token]
        for token in own { #expect(status { _ = try room.engine.posts(token) } == .ok) }
        // The number of a token of one kind says nothing about the next one in its place.
        for token in others { try room.engine.cancel(token) }
        let later = try room.register("com.example.a")
        #expect(try room.engine.posts(later) == before + 1)
    }

    @Test(arguments: busKinds)
    func `a signal that does not exist can be registered, and is not sent`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        var tokens: [Int32] = []
        for number in [0, 4_711, -1, Int32.max, Int32.min] as [Int32] {
            var token: Int32 = 0
            try room.engine.register("com.example.a", signal: number, token: &token)
            tokens.append(token)
        }
        try room.engine.post("com.example.a")
        try room.post("com.example.a")
        for token in tokens { #expect(room.engine.check(token) == true && room.engine.check(token) == false) }
    }
}

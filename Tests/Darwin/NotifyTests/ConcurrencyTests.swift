// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyTokens
import Synchronization
import TestSupport
import Testing

/// Everything at once, also for the thread sanitizer.
@Suite
struct ConcurrencyTests {
    @Test(arguments: anyBusKind())
    func `four threads register and cancel, while others post, check, suspend and resume`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let failures = Counter()
        let finished = Counter()
        let isOver = Atomic(false)
        let lasting = try room.register("com.example.shared")
        let callback = CallbackContext { token in _ = room.engine.isValid(token) }
        for number in 0..<4 {
            startThread {
                for round in 0..<10_000 {
                    var token: Int32 = 0
                    let name = round % 2 == 0 ? "com.example.shared" : "com.example.\(number)"
                    let wish: TokenEngine.Wish =
                        switch round % 5 {
                        case 0: .queue { $0.run {} }
                        case 1: .callback(callback.function)
                        default: .none
                        }
                    if status({ try room.engine.register(name, wish, token: &token) }) != .ok { failures.add() }
                    if room.engine.check(token) != true { failures.add() }
                    if round % 3 == 0 { _ = status { try room.engine.suspend(token) } }
                    if round % 6 == 0 { _ = status { try room.engine.resume(token) } }
                    if status({ try room.engine.cancel(token) }) != .ok { failures.add() }
                    if room.engine.check(token) != nil { failures.add() }
                }
                finished.add()
            }
        }
        startThread {
            while !isOver.load(ordering: .relaxed) {
                // Also with other threads' tokens, as they come and go; a check would consume their answer.
                for token in 1..<1_000 as Range<Int32> { _ = try? room.engine.posts(lasting &+ token) }
                _ = room.engine.check(lasting)
            }
            finished.add()
        }
        startThread {
            while !isOver.load(ordering: .relaxed) {
                for _ in 0..<20 { _ = status { try room.engine.post("com.example.shared") } }
                usleep(1_000)
            }
            finished.add()
        }
        #expect(finished.wait(for: 4, timeout: .patience * 3))
        isOver.store(true, ordering: .relaxed)
        #expect(finished.wait(for: 6))
        #expect(failures.value == 0)
        try room.settle()
        _ = room.engine.check(lasting)
        try room.post("com.example.shared")
        #expect(room.engine.check(lasting) == true)
    }

    @Test(arguments: anyBusKind())
    func `a descriptor is cancelled and created while posts are written to it`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let finished = Counter()
        let failures = Counter()
        for _ in 0..<2 {
            startThread {
                for _ in 0..<500 {
                    guard let (one, descriptor) = try? room.registerPipe("com.example.a"),
                        let two = try? room.registerPipe("com.example.a", reusing: descriptor).token
                    else { return failures.add() }
                    _ = status { try room.engine.post("com.example.a") }
                    var number: Int32 = 0
                    if read(descriptor, &number, 4) != 4 { failures.add() }
                    if ![one, two].contains(Int32(bigEndian: number)) { failures.add() }
                    _ = status { try room.engine.cancel(one) }
                    _ = status { try room.engine.cancel(two) }
                }
                finished.add()
            }
        }
        #expect(finished.wait(for: 2, timeout: .patience * 3))
        #expect(failures.value == 0)
    }
}

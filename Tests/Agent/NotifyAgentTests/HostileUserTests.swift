// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyNames
import Synchronization
import TestSupport
import Testing

/// A user whose programs demand as much of the agent as they may, and more.
@Suite(.serialized, .enabled(if: Stranger.unavailable == nil, "Only root can connect as another user."))
struct HostileUserTests {
    private static let refused = "org.freedesktop.DBus.Error.LimitsExceeded"

    /// Another user, who observes a name and gives a command every 20 ms.
    private final class Innocent: Sendable {
        private let caller: Stranger
        private let observer: Stranger
        private let isDone = Atomic(false)

        init(_ bus: PrivateBus) throws {
            caller = try Stranger(address: bus.address, .stays)
            observer = try Stranger(address: bus.address, .stays)
            try #require(try observer.client.register(["com.example.innocent"]).kind == .reply)
        }

        /// Moves the observer to the background and back until `stop`. Each command is answered in time, within 5 s.
        ///
        /// - Returns: how often.
        func run() throws -> Int {
            var state = "background"
            var count = 0
            while !isDone.load(ordering: .relaxed) {
                let serial = try caller.client.begin(observer.client.uniqueName, state)
                #expect(try observer.client.takeCall("SetState").string == state)
                let answer = try caller.client.answer(to: serial)
                // On a slow machine the answer may be that it takes longer.
                let isAnswer = answer.kind == .reply || answer.errorName == "org.notifybus.Error.TimedOut"
                #expect(isAnswer, "\(answer)")
                state = state == "background" ? "foreground" : "background"
                count += 1
                usleep(20_000)
            }
            return count
        }

        func stop() { isDone.store(true, ordering: .relaxed) }
    }

    @Test(arguments: busKinds)
    func `a user with 250 connections at their limits gets no more, harms nobody, and leaves nothing behind`(
        kind: BusKind
    ) throws {
        let agent = try AgentBus(kind)
        let pid = agent.agent.pid
        let innocent = try Innocent(agent.bus)
        let before = residentBytes(of: pid)
        // On a thread of its own, because the threads for tasks may all be blocked in other tests.
        let commands = Recorder<Result<Int, any Error>>()
        startThread { commands.append(Result { try innocent.run() }) }

        // Two ask for as much as a user may have altogether, the others for a little of everything. Those that come late
        // are refused anyway.
        var connections: [RawBusClient] = []
        var taken: [String] = []
        var sentences: Set<String> = []
        for number in 0..<250 {
            let client = try RawBusClient(address: agent.bus.address)
            connections.append(client)
            let isLarge = number % 125 == 24
            let stem = "com.example.hostile.h\(number)." + String(repeating: "x", count: 80)
            let names = (0..<(isLarge ? 65_536 : number < 50 ? 1_024 : 16)).map { "\(stem).n\($0)" }
            let prefixes = (0..<256).map { "com.example.prefix.p\(number).n\($0)" }
            let answer = try client.register(names, prefixes: prefixes, state: "suspended", timeout: .patience)
            if answer.kind == .reply {
                taken.append(client.uniqueName)
            } else {
                #expect(answer.errorName == HostileUserTests.refused, "\(answer)")
                sentences.insert(answer.string ?? "")
            }
        }
        #expect(taken.count > 10 && taken.count < 250)
        #expect(!sentences.isEmpty && sentences.allSatisfy { $0.contains("limit") }, "\(sentences)")
        // The agent keeps what is posted to suspended programs.
        let poster = connections[1]
        for number in 0..<20_000 {
            let name = "com.example.prefix.p\(number % 250).n\(number % 256).x\(number)"
            try poster.emitSignal(
                path: "/org/notifybus",
                interface: "org.notifybus.n." + name,
                member: "Posted",
                signature: "s",
                body: RawBusClient.stringBody(name)
            )
        }
        // Calls that their targets don't answer, more than a user may have pending.
        var refusals = 0
        var missing: Set<UInt32> = []
        for index in 0..<1_500 {
            missing.insert(try poster.begin(taken[index % taken.count], "foreground"))
        }
        while !missing.isEmpty {
            let message = try poster.readMessage(timeout: .patience)
            guard let serial = message.replySerial, missing.remove(serial) != nil else { continue }
            if message.errorName == HostileUserTests.refused { refusals += 1 }
        }
        #expect(refusals > 0)
        try agent.checkAlive()
        let peak = peakResidentBytes(of: pid)
        #expect(peak < 128 << 20, "the agent had \(peak >> 20) MB")

        connections = []
        let isBack = waitUntil(timeout: .patience) { residentBytes(of: pid) < before + (16 << 20) }
        #expect(isBack, "the agent kept \((residentBytes(of: pid) - before) >> 20) MB")
        innocent.stop()
        // Measured, without optimization on a busy machine: an answer takes 0.6 ms in the middle, 0.8 s at worst.
        try #require(commands.wait(forCount: 1, timeout: .patience))
        #expect(try commands.elements[0].get() > 0)
    }
}

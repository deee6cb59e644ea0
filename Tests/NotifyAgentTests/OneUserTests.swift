// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import Synchronization
import TestSupport
import Testing

/// One user takes as much as the agent allows. The tests run one after the other, as they measure the agent's memory.
@Suite(.serialized) struct OneUserTests {
    private static let connections = 250

    /// The names of one connection, 110 bytes each.
    private func names(_ count: Int, of number: Int) -> [String] {
        let stem = "com.example.greedy.\(number)." + String(repeating: "x", count: 80)
        return (0..<count).map { String((stem + ".\($0)").prefix(110)) + "\($0)" }
    }

    @Test(arguments: busKinds)
    func `250 connections at their limits leave the agent small and responsive, and as it was once they are gone`(
        kind: BusKind
    )
        throws
    {
        let agent = try AgentBus(kind)
        let innocent = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-v", "-f", "com.example.innocent"],
            environment: withoutDesktop
        )
        try innocent.waitForErrorOutput(containing: "live")
        let watch = Commands(agent.bus.address, "pid:\(innocent.pid)")
        let before = residentBytes(of: agent.agent.pid)
        let (durations, refusals) = try watch.whileRunning {
            var greedy: [RawBusClient] = []
            var refusals: [String] = []
            for number in 0..<OneUserTests.connections {
                let client = try RawBusClient(address: agent.bus.address)
                greedy.append(client)
                for attempt in [names(262, of: number), names(2_000, of: number)] {
                    let answer = try client.register(attempt)
                    if answer.kind == .error { refusals.append(answer.errorName ?? "") }
                }
            }
            for client in greedy {
                let serial = try client.begin(client.uniqueName, "suspended")
                while true {
                    let message = try client.readMessage(timeout: .patience)
                    if message.kind == .call, message.member == "SetState" { try client.answerSetState(message) }
                    if message.replySerial == serial { break }
                }
            }
            let poster = NotifyCenter(bus: .address(agent.bus.address))
            for number in 0..<20 {
                for name in names(262, of: number) { try poster.post(NotifyName(name)) }
            }
            try poster.synchronize(timeout: .patience)
            return refusals
        }
        let peak = peakResidentBytes(of: agent.agent.pid)
        #expect(peak < 128 << 20, "\(peak >> 20) MB")
        #expect(!refusals.isEmpty && refusals.allSatisfy { $0 == "org.freedesktop.DBus.Error.LimitsExceeded" })
        // They began before the connections and ended after the last call. How long they took is for
        // people to read: a test has no opinion on a busy machine's speed.
        let sorted = durations.sorted()
        // They have disconnected: `whileRunning` has released them.
        var now = 0
        let isBack = waitUntil(timeout: .patience) {
            now = residentBytes(of: agent.agent.pid)
            return now < before + (16 << 20)
        }
        #expect(isBack, "\(now >> 20) MB, and \(before >> 20) before")
        print("\(kind): peak \(peak >> 20) MB, then \(now >> 20), before \(before >> 20); median", terminator: " ")
        print("\(sorted[sorted.count / 2]), worst \(sorted.last ?? .zero) of \(sorted.count)")
    }

    enum Flood: CaseIterable, Sendable { case additions, changes, lists }

    @Test(arguments: busKinds, Flood.allCases)
    func `60,000 calls leave the agent below 64 MB, and as it was once they are over`(kind: BusKind, flood: Flood)
        throws
    {
        let agent = try AgentBus(kind, limits: ["max_replies_per_connection": 50_000])
        let before = residentBytes(of: agent.agent.pid)
        do {
            let client = try RawBusClient(address: agent.bus.address)
            try #require(try client.register(names(1_000, of: 0)).kind == .reply)
            var message = RawMessage(.call)
            message.destination = "org.notifybus.Agent1"
            message.path = "/org/notifybus/Agent1"
            message.interface = "org.notifybus.Agent1"
            message.flags = flood == .lists ? 0 : 1
            switch flood {
            case .additions:
                var body = RawBody()
                body.append(names(1, of: 1))
                body.append([])
                (message.member, message.signature, message.body) = ("AddNames", "asas", body.bytes)
            case .changes:
                let body = RawBusClient.setStateBody("pid:1", "background")
                (message.member, message.signature, message.body) = ("SetState", "ssb", body)
            case .lists: message.member = "List"
            }
            // Nothing is read meanwhile.
            for _ in 0..<(flood == .lists ? 600 : 60_000) { try client.send(message) }
            _ = try RawBusClient(address: agent.bus.address).callAgent("Status")
        }
        let peak = peakResidentBytes(of: agent.agent.pid)
        #expect(peak < 64 << 20, "\(peak >> 20) MB")
        var now = 0
        let isBack = waitUntil(timeout: .patience) {
            now = residentBytes(of: agent.agent.pid)
            return now < before + (16 << 20)
        }
        #expect(isBack, "\(now >> 20) MB, and \(before >> 20) before")
        print("\(kind), \(flood): peak \(peak >> 20) MB, then \(now >> 20), before \(before >> 20)")
    }

    /// Runs another user's commands, one after the other, while `body` runs. Each must be answered.
    private final class Commands: Sendable {
        private let address: String
        private let target: String
        private let durations = Mutex<[Duration]>([])
        private let isOver = Mutex(false)
        private let failure = Mutex<String?>(nil)
        private let begun = Counter()
        private let ended = Counter()

        init(_ address: String, _ target: String) {
            self.address = address
            self.target = target
        }

        private func measure(_ client: RawBusClient) throws {
            for state in ["background", "foreground"] {
                let began = ContinuousClock.now
                let answer = try client.setState(target, state)
                durations.withLock { $0.append(ContinuousClock.now - began) }
                // On a slow machine the answer may be that it takes longer.
                let isAnswer = answer.kind == .reply || answer.errorName == "org.notifybus.Error.TimedOut"
                try #require(isAnswer, "\(answer.string ?? "")")
            }
        }

        /// - Returns: how long each command took, and what `body` returns.
        func whileRunning<Result>(_ body: () throws -> Result) throws -> ([Duration], Result) {
            startThread { [self] in
                do {
                    let client = try RawBusClient(address: address)
                    repeat {
                        try measure(client)
                        begun.add()
                    } while !isOver.withLock { $0 }
                } catch {
                    failure.withLock { $0 = "\(error)" }
                }
                ended.add()
            }
            // When the first one runs, the agent does nothing else.
            let isAnswered = begun.wait(for: 1)
            let result = Swift.Result { try body() }
            isOver.withLock { $0 = true }
            try #require(ended.wait(for: 1, timeout: .patience))
            try #require(failure.withLock { $0 } == nil)
            #expect(isAnswered)
            return (durations.withLock { $0 }, try result.get())
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// One user takes as much as the agent allows. The tests run one after the other, as they measure the agent's memory.
@Suite(.serialized) struct OneUserTests {
    /// The names of one connection, 110 bytes each.
    private func names(_ count: Int, of number: Int) -> [String] {
        let stem = "com.example.greedy.\(number)." + String(repeating: "x", count: 80)
        return (0..<count).map { String((stem + ".\($0)").prefix(110)) + "\($0)" }
    }

    enum Flood: CaseIterable, Sendable { case additions, changes, lists }

    @Test(arguments: busKinds, Flood.allCases)
    func `30,000 calls leave the agent below 32 MB, and as it was once they are over`(kind: BusKind, flood: Flood)
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
            for _ in 0..<(flood == .lists ? 600 : 30_000) { try client.send(message) }
            _ = try RawBusClient(address: agent.bus.address).callAgent("Status")
        }
        let peak = peakResidentBytes(of: agent.agent.pid)
        #expect(peak < 32 << 20, "\(peak >> 20) MB")
        var now = 0
        let isBack = waitUntil(timeout: .patience) {
            now = residentBytes(of: agent.agent.pid)
            return now < before + (16 << 20)
        }
        #expect(isBack, "\(now >> 20) MB, and \(before >> 20) before")
        print("\(kind), \(flood): peak \(peak >> 20) MB, then \(now >> 20), before \(before >> 20)")
    }
}

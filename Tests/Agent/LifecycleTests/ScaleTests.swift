// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

@Suite(.serialized) struct ScaleTests {
    /// 2,000 with `NOTIFYBUS_LONG=1`, which takes minutes, nearly all of them until the observers are there.
    private static let observers = isLongRun ? 2_000 : 250

    @Test(.serialized, arguments: busKinds)
    func `many observers change their state at once, and the agent stays small`(kind: BusKind) async throws {
        let agent = try AgentBus(
            kind,
            limits: [
                "max_connections_per_user": 10_000, "max_completed_connections": 10_000,
                "max_incomplete_connections": 1_000, "max_match_rules_per_connection": 50_000,
                "max_replies_per_connection": 50_000,
            ]
        )
        // The observers have a process of their own, with two threads and four descriptors for each.
        try handOver("\(agent.agentProcess) \(agent.bus.address)", to: "many-observers")
        let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
            do {
                let words = try handedOver(to: "many-observers").split(separator: " ", maxSplits: 1)
                try ScaleTests.changeAll(String(words[1]), pid_t(words[0]) ?? 0)
            } catch {
                print("failed: \(error)")
                exit(7)
            }
        }
        let report = result.map { String(decoding: $0.standardOutputContent, as: UTF8.self) } ?? ""
        let peak = report.split { $0.isWhitespace }.last.flatMap { Int($0) } ?? .max
        #expect(peak < (16 << 20) + ScaleTests.observers * (24 << 10), "\(report)")
        // The duration is only printed: tests make no assumptions about a busy machine's speed.
        print("\(kind): \(report)")
    }

    /// Ends the process.
    private static func changeAll(_ address: String, _ agentProcess: pid_t) throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let heard = Counter()
        var kept: [(NotifyCenter, NotifyCenter.Observation)] = []
        for number in 0..<ScaleTests.observers {
            let center = NotifyCenter(bus: .address(address))
            let names = try [NotifyName("com.example.all"), NotifyName("com.example.own.\(number)")]
            let observation = try center.addObserver(matching: NotifySubject(names: names), timeout: .patience) { _ in
                heard.add()
            }
            kept.append((center, observation))
        }
        // A report is for the whole process, and returns when it is in force for all its connections. On a busy machine
        // all of them may take longer than the agent's limit; repeating the report continues the wait.
        let clock = ContinuousClock()
        func report(_ state: LifecycleState) throws -> Duration {
            try clock.measure {
                while true {
                    do throws(NotifyBusError) {
                        return try kept[0].0.lifecycle.report(state, timeout: .patience)
                    } catch {
                        guard error.code == .timedOut else { throw error }
                    }
                }
            }
        }
        let toBackground = try report(.background)
        guard kept.allSatisfy({ $0.0.lifecycle.state == .background }) else { exit(2) }
        let poster = NotifyCenter(bus: .address(address))
        try poster.postOnceConnected("com.example.all")
        try poster.synchronize(timeout: .patience)
        let toForeground = try report(.foreground)
        guard kept.allSatisfy({ $0.0.lifecycle.state == .foreground }) else { exit(3) }
        try poster.postOnceConnected("com.example.all")
        guard heard.wait(for: ScaleTests.observers, timeout: .patience) else { exit(4) }
        let toSuspended = try report(.suspended)
        try poster.postOnceConnected("com.example.all")
        try poster.synchronize(timeout: .patience)
        let resumed = try report(.foreground)
        guard heard.wait(for: 2 * ScaleTests.observers, timeout: .patience) else { exit(5) }
        print("background \(toBackground), foreground \(toForeground)")
        print("suspended \(toSuspended), foreground \(resumed)")
        print("agent \(peakResidentBytes(of: agentProcess))")
        exit(heard.value == 2 * ScaleTests.observers ? 0 : 6)
    }
}

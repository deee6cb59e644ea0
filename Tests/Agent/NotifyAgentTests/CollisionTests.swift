// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct CollisionTests {
    /// The processor time of a process, in seconds. See proc_pid_schedstat(5).
    private func processorTime(of pid: pid_t) -> Double {
        threads(of: pid).reduce(0) { $0 + $1 } / 1e9
    }

    private func threads(of pid: pid_t) -> [Double] {
        (try? run("sh", ["-c", "cat /proc/\(pid)/task/*/schedstat"]).output.split(separator: "\n"))?.compactMap {
            line in
            line.split(separator: " ").first.flatMap { Double($0) }
        } ?? []
    }

    @Test(arguments: anyBusKind())
    func `colliding names cost the agent no more than the same number of others`(kind: BusKind) throws {
        let colliding = Array(collidingNames[..<16_384])
        let others = colliding.indices.map { number in
            let digits = String(number)
            return digits + String(repeating: "x", count: colliding[number].utf8.count - digits.utf8.count)
        }
        func cost(_ names: [String]) throws -> Double {
            let agent = try AgentBus(kind)
            let client = try RawBusClient(address: agent.bus.address)
            let before = processorTime(of: agent.agent.pid)
            #expect(try client.register(names).string == "foreground")
            return processorTime(of: agent.agent.pid) - before
        }
        // If each were compared with each, it would be thirty times as much each time. A busy machine may spoil one.
        var costs: [(Double, Double)] = []
        let isEqual = try (0..<3).contains { _ in
            costs.append((try cost(colliding), try cost(others)))
            return costs.last.map { $0 < 10 * $1 } ?? false
        }
        #expect(isEqual, "\(costs)")
    }
}

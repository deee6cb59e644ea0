// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

@Suite struct RegisteringTests {
    @Test func `a report to an earlier agent counts for each connection, whoever registers first`() throws {
        for isFirst in [true, false] {
            var world = World()
            let process = World.process(7)
            func register(_ name: String, _ state: LifecycleState, by decider: String) throws {
                _ = try world.register(name, process, ["com.example.a"]) { statement in
                    (statement.state, statement.decider, statement.previous) = (state, decider, name)
                }
            }
            // One of them has given up on the agent in the meantime, and forgotten who had decided.
            if isFirst { try register(":1.1", .suspended, by: "program") }
            try register(":1.2", .foreground, by: "default")
            if !isFirst { try register(":1.1", .suspended, by: "program") }
            world.settle()
            for name in [":1.1", ":1.2"] {
                let id = try #require(world.coordinator.id(of: name))
                #expect(world.coordinator.entry(of: id)?.state == .suspended, "\(name)")
            }
        }
    }
}

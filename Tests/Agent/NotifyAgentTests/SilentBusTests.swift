// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent
import TestSupport
import Testing

@testable import notify_agent

/// A bus that accepts the agent's connection and then says nothing.
@Suite struct SilentBusTests {
    @Test(.serialized, arguments: busKinds)
    func `the agent ends with 69 instead of waiting for its name`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address, .fallsSilent)
        defer { relay.close() }
        // In a process of its own, because the agent blocks signals.
        try handOver(relay.address, to: "silent-bus")
        await #expect(processExitsWith: .exitCode(69)) {
            let address = try handedOver(to: "silent-bus")
            var settings = AgentSettings()
            let arguments = ["--address", address].compactMap { Argument(copying: $0) }
            _ = try AgentCommand.command.parse(arguments, into: &settings)
            let code = AgentRunner.run(
                settings,
                Agent.Configuration(),
                Logger(level: .warning) { _, _ in },
                Diagnostics(command: "notify-agent"),
                busLimit: .milliseconds(100)
            )
            exit(code.rawValue)
        }
    }

    /// A session waits for its services when it ends, and its bus may be the first to go.
    @Test(arguments: busKinds)
    func `the agent ends without its bus, although it could leave what it knows`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address)
        defer { relay.close() }
        let path = bus.folder + "/notify"
        let socket = try DatagramSocket(path, isAbstract: false)
        let agent = try start(
            productPath("notify-agent"),
            ["--address", relay.address],
            environment: withoutDesktop.merging(["XDG_RUNTIME_DIR": bus.folder, "NOTIFY_SOCKET": path]) { $1 }
        )
        try agent.waitForErrorOutput(containing: "ready")
        relay.hold()
        agent.send(signal: SIGTERM)
        // It waits for eight seconds, and only for the service manager for 35.
        #expect(try agent.wait(timeout: .seconds(30)).status == 0)
        withExtendedLifetime(socket) {}
    }
}

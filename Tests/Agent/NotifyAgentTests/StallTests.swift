// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct StallTests {
    /// The only way to see this is to wait as long as the agent does.
    @Test(arguments: busKinds)
    func `an agent gives up a bus that takes nothing from it for ten seconds`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        // A list that is longer than what a socket takes.
        let observers = try (0..<60).map { number in
            let client = try RawBusClient(address: agent.bus.address)
            let names = (0..<8).map { "com.example.n\(number).\($0)." + String(repeating: "x", count: 400) }
            try #require(try client.register(names).kind == .reply)
            return client
        }
        let clients = try (0..<8).map { _ in try RawBusClient(address: agent.bus.address) }
        for client in clients { try #require(try client.callAgent("List").kind == .reply) }
        try agent.halt()
        var message = RawMessage(.call)
        message.destination = "org.notifybus.Agent1"
        message.path = "/org/notifybus/Agent1"
        message.interface = "org.notifybus.Agent1"
        message.member = "List"
        for client in clients {
            try client.send(message)
            // The bus has then passed it on.
            try client.callBus("GetId")
        }
        agent.bus.stop()
        let began = ContinuousClock.now
        agent.agent.send(signal: SIGCONT)
        let end = try agent.agent.wait(timeout: .patience)
        #expect(end.status == 69, "\(end.errorOutput)")
        #expect(ContinuousClock.now - began >= .seconds(10))
        agent.bus.resume()
        withExtendedLifetime(observers) {}
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// `notify-agent` as a program.
struct ServiceTests {
    @Test(arguments: busKinds)
    func `a second agent names the first; with --replace it takes its place`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let second = try run(productPath("notify-agent"), ["--address", agent.bus.address])
        #expect(second.status == 1)
        #expect(second.errorOutput.contains("process \(agent.agent.pid)") && second.errorOutput.contains("--replace"))
        let third = try start(productPath("notify-agent"), ["--address", agent.bus.address, "--replace"])
        try third.waitForErrorOutput(containing: "ready")
        #expect(try agent.agent.wait(timeout: .patience).status == 0)
        third.send(signal: SIGTERM)
        #expect(try third.wait(timeout: .patience).status == 0)
    }

    @Test(arguments: busKinds)
    func `without a bus, or when the bus goes away, the exit status is 69`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        agent.bus.kill()
        #expect(try agent.agent.wait(timeout: .patience).status == 69)
        let late = try run(productPath("notify-agent"), ["--address", agent.bus.address])
        #expect(late.status == 69)
    }

    @Test(arguments: busKinds)
    func `the agent tells a service manager when it is ready and when it is stopping`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let name = "notifybus-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        let manager = try DatagramSocket(name, isAbstract: true)
        let agent = try start(
            productPath("notify-agent"),
            ["--address", bus.address],
            environment: ["NOTIFY_SOCKET": "@\(name)"]
        )
        #expect(try manager.receive().contains("READY=1"))
        let client = try RawBusClient(address: bus.address)
        #expect(try client.callAgent("List").kind == .reply)
        agent.send(signal: SIGTERM)
        #expect(try manager.receive().contains("STOPPING=1"))
        #expect(try agent.wait(timeout: .patience).status == 0)
    }

    @Test(arguments: busKinds)
    func `a log line begins with its priority for a journal, and with the time and the program elsewhere`(
        kind: BusKind
    ) throws {
        func log(_ stream: String?) throws -> [Substring] {
            let bus = try PrivateBus(kind)
            let agent = try start(
                productPath("notify-agent"),
                ["--address", bus.address, "-v"],
                environment: ["JOURNAL_STREAM": stream]
            )
            try agent.waitForErrorOutput(containing: "ready\n")
            agent.send(signal: SIGTERM)
            return try agent.wait(timeout: .patience).errorOutput.split(separator: "\n")
        }
        let journal = try log("8:1")
        #expect(journal.contains("<5>ready") && journal.contains("<5>terminating on signal 15"))
        #expect(journal.contains { $0.hasPrefix("<7>acquired the bus name connection=:1.") })
        let terminal = try log(nil)
        #expect(terminal.contains { (try? /\d\d:\d\d:\d\d notify-agent: ready/.wholeMatch(in: $0)) != nil })
    }

    @Test(arguments: busKinds)
    func `the installed interface file describes what is served`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let client = try RawBusClient(address: agent.bus.address)
        let reply = try client.callAgent("Introspect", interface: "org.freedesktop.DBus.Introspectable")
        try compare("org.notifybus.Agent1", try #require(reply.string))
        #expect(try client.callAgent("OpenRelay").kind == .reply)
        let relay = try client.call(
            destination: "org.notifybus.Relay1",
            path: "/org/notifybus/Relay1",
            interface: "org.freedesktop.DBus.Introspectable",
            member: "Introspect"
        )
        try compare("org.notifybus.Relay1", try #require(relay.string))
    }

    private func compare(_ name: String, _ served: String) throws {
        let file = try readFile("\(packageFolder)/Sources/Agent/NotifyAgent/Interface/\(name).xml")
        func interface(_ text: String) -> [Substring] {
            let lines = text.split(separator: "\n")
            guard let start = lines.firstIndex(where: { $0.contains("\"\(name)\"") }) else { return [] }
            return Array(lines[start...].prefix { !$0.contains("</interface>") })
        }
        #expect(!interface(file).isEmpty)
        #expect(interface(file) == interface(served))
    }

    @Test func `a mistake in the configuration is reported with its line`() throws {
        let result = try run(
            productPath("notify-agent"),
            ["--check", "--config", "/dev/stdin"],
            input: "# settings\nexempt = app:org.example.A\nexempt = nobody\n"
        )
        #expect(result.status == 1)
        #expect((result.output + result.errorOutput).contains("/dev/stdin:3: "))
    }

    @Test(arguments: busKinds)
    func `an agent without observers doesn't wake up, and with observers less than twice a second`(
        kind: BusKind
    ) throws {
        let agent = try AgentBus(kind)
        let client = try RawBusClient(address: agent.bus.address)
        // Once it has answered, what it does at its start is done, and its threads are asleep again.
        _ = try client.callAgent("List")
        #expect(try sleeps(agent.agent.pid, for: "2s"))

        let threads = threadCount(of: agent.agent.pid)
        let observer = try RawBusClient(address: agent.bus.address)
        _ = try observer.register(["com.example.a"])
        // The sources have been started as well, and have found nothing here.
        #expect(waitUntil { threadCount(of: agent.agent.pid) == threads })
        _ = try client.callAgent("List")
        // Once a second it looks at the observer's process, after what remains to be done for the registration.
        let isQuiet = try waitUntil {
            let before = wakeUps(of: agent.agent.pid)
            let elapsed = try ContinuousClock().measure { try passTime("2s") }
            return wakeUps(of: agent.agent.pid) - before <= 2 * Int(elapsed.components.seconds) + 1
        }
        #expect(isQuiet)
    }

}

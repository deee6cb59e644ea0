// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// `notify-agent` as a program.
@Suite(.serialized) struct ServiceTests {
    @Test(arguments: busKinds)
    func `a second agent names the first; with --replace it takes its place`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let second = try run(productPath("notify-agent"), ["--address", agent.bus.address])
        #expect(second.status == 1)
        #expect(second.errorOutput.contains("process \(agent.agent.pid)") && second.errorOutput.contains("--replace"))
        let third = try start(productPath("notify-agent"), ["--address", agent.bus.address, "--replace"])
        try third.waitForErrorOutput(containing: "serves")
        #expect(try agent.agent.wait(timeout: .seconds(10)).status == 0)
        third.send(signal: SIGTERM)
        #expect(try third.wait(timeout: .seconds(10)).status == 0)
    }

    @Test(arguments: busKinds)
    func `without a bus the status is 69, also when the bus goes`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        agent.bus.kill()
        #expect(try agent.agent.wait(timeout: .seconds(10)).status == 69)
        let late = try run(productPath("notify-agent"), ["--address", agent.bus.address])
        #expect(late.status == 69)
    }

    @Test(arguments: busKinds)
    func `what is installed describes what is served`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let client = try RawBusClient(address: agent.bus.address)
        let reply = try client.callAgent("Introspect", interface: "org.freedesktop.DBus.Introspectable")
        let folder = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let path = "/\(folder)/Sources/NotifyAgent/Interface/org.notifybus.Agent1.xml"
        let file = try run("cat", [path]).output
        func interface(_ text: String) -> [Substring] {
            let lines = text.split(separator: "\n")
            guard let start = lines.firstIndex(where: { $0.contains("\"org.notifybus.Agent1\"") }) else { return [] }
            return Array(lines[start...].prefix { !$0.contains("</interface>") })
        }
        #expect(!interface(file).isEmpty)
        #expect(interface(file) == interface(try #require(reply.string)))
    }

    @Test func `a mistake in the configuration is reported with its line`() throws {
        let bus = try PrivateBus(.daemon)
        let result = try run(
            productPath("notify-agent"),
            ["--address", bus.address, "--config", "/dev/stdin"],
            input: "# settings\nexempt = app:org.example.A\nexempt = nobody\n"
        )
        #expect(result.status == 1)
        #expect(result.errorOutput.contains("/dev/stdin:3: "))
    }

    @Test(arguments: busKinds)
    func `an agent that manages nothing does not wake, and with observers less than twice a second`(
        kind: BusKind
    ) throws {
        let agent = try AgentBus(kind)
        usleep(200_000)
        let idle = contextSwitches(of: agent.agent.pid)
        usleep(2_000_000)
        #expect(contextSwitches(of: agent.agent.pid) == idle)
        let observer = try RawBusClient(address: agent.bus.address)
        _ = try observer.register(["com.example.a"])
        usleep(200_000)
        let before = contextSwitches(of: agent.agent.pid)
        usleep(3_000_000)
        #expect(contextSwitches(of: agent.agent.pid) - before < 6)
    }

    @Test(arguments: busKinds)
    func `2,000 observers change their state within 2 s, in less than 64 MB`(kind: BusKind) throws {
        let limits = ["max_connections_per_user": 4_096, "max_completed_connections": 4_096]
        let agent = try AgentBus(kind, limits: kind == .daemon ? limits : [:])
        let control = try RawBusClient(address: agent.bus.address)
        let observers = try (0..<2_000).map { _ in try RawBusClient(address: agent.bus.address) }
        for (index, observer) in observers.enumerated() { _ = try observer.register(["com.example.n\(index % 50)"]) }
        for state in ["suspended", "foreground", "background"] {
            let serial = try control.begin("pid:\(getpid())", state)
            let start = ContinuousClock.now
            // Answered in the order in which they are asked, whatever that is.
            try answerAll(observers)
            #expect(try control.answer(to: serial).uint32 == 2_000)
            let elapsed = ContinuousClock.now - start
            #expect(elapsed < .seconds(2), "\(state): \(elapsed)")
        }
        let peak = peakResidentBytes(of: agent.agent.pid)
        #expect(peak < 64 << 20, "\(peak)")
    }

    /// Lets every observer answer one SetState.
    private func answerAll(_ observers: [RawBusClient]) throws {
        let failures = Counter()
        // One thread cannot wait for one of them: the agent asks only some at a time.
        var rest = observers
        let deadline = ContinuousClock.now + .seconds(20)
        while !rest.isEmpty {
            try #require(ContinuousClock.now < deadline, "\(rest.count) were not asked")
            let before = rest.count
            rest = rest.filter { observer in
                guard let call = try? observer.readCall(timeout: .milliseconds(0)), call.member == "SetState" else {
                    return true
                }
                if (try? observer.answerSetState(call)) == nil { failures.add() }
                return false
            }
            if rest.count == before { usleep(1_000) }
        }
        #expect(failures.value == 0)
    }
}

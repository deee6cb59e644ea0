// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// The states of a program that uses the relay.
@Suite(.enabled(if: FlatpakSandbox.obstacle == nil, "\(FlatpakSandbox.obstacle ?? "")"))
struct StateTests {
    @Test(arguments: busKinds)
    func `in the background it hears nothing, then or later`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.a", "com.example.b", in: sandbox)
        let target = "pid:\(try scene.observerProcess())"
        try scene.post(["com.example.a"])
        try observer.waitForOutputLines(1)
        try scene.lifecycle("background", target)
        try scene.post(["com.example.a", "com.example.a"])
        try scene.lifecycle("foreground", target)
        try scene.post(["com.example.b"])
        #expect(try observer.waitForOutputLines(2) == ["com.example.a", "com.example.b"])
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `while suspended it hears nothing; when it resumes each name once, and then all posts again`(kind: BusKind)
        throws
    {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.*", in: sandbox)
        let target = "pid:\(try scene.observerProcess())"
        try scene.lifecycle("suspend", target)
        let names = ["com.example.b", "com.example.a"]
        for _ in 0..<100 { try scene.post(names) }
        try scene.lifecycle("resume", target)
        try scene.post(["com.example.a", "com.example.a", "com.example.end"])
        try observer.waitForOutput(containing: "com.example.end\n")
        observer.send(signal: SIGTERM)
        #expect(try observer.wait().lines == names + ["com.example.a", "com.example.a", "com.example.end"])
        withExtendedLifetime(sandbox) {}
    }

    /// The agent and its relay have a connection each, and may read the call before the posts.
    @Test(arguments: busKinds)
    func `what was posted just before it resumes is heard once, too`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.*", in: sandbox)
        let target = "pid:\(try scene.observerProcess())"
        try scene.lifecycle("suspend", target)
        kill(scene.agentProcess, SIGSTOP)
        for _ in 0..<500 { try scene.post(["com.example.a", "com.example.b"]) }
        let person = try RawBusClient(address: scene.bus.address)
        var body = RawBody()
        for text in [target, "foreground"] { body.append(text) }
        body.append(UInt32(0))
        var call = RawMessage(.call)
        (call.destination, call.path) = ("org.notifybus.Agent1", "/org/notifybus/Agent1")
        (call.interface, call.member) = ("org.notifybus.Agent1", "SetState")
        (call.signature, call.body) = ("ssb", body.bytes)
        let serial = try person.send(call)
        // The bus has it, too.
        try person.callBus("GetId")
        kill(scene.agentProcess, SIGCONT)
        while try person.readMessage().replySerial != serial {}
        try scene.post(["com.example.end"])
        try observer.waitForOutput(containing: "com.example.end\n")
        observer.send(signal: SIGTERM)
        let lines = try observer.wait().lines
        #expect(lines == ["com.example.a", "com.example.b", "com.example.end"])
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `a stopped program costs the bus one message, and misses no name`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.a", "com.example.b", "com.example.end", in: sandbox)
        let probe = try scene.startWaiting("-f", "com.example.mark", in: sandbox)
        try scene.post(["com.example.a"])
        try observer.waitForOutputLines(1)
        // The whole process group: bubblewrap and what runs in it.
        kill(-observer.pid, SIGSTOP)
        var marks = 0
        /// Posts, and returns once the relay has heard it.
        func post(rounds: Int) throws {
            for _ in 0..<rounds {
                for _ in 0..<1_000 {
                    try scene.poster.postOnceConnected("com.example.a")
                    try scene.poster.postOnceConnected("com.example.b")
                }
                try scene.post(["com.example.mark"])
                marks += 1
                try probe.waitForOutputLines(marks)
            }
        }
        // The bus never has to keep more than this for the relay.
        kill(scene.agentProcess, SIGSTOP)
        for _ in 0..<1_000 {
            for name in ["com.example.a", "com.example.b"] as [NotifyName] { try scene.poster.postOnceConnected(name) }
        }
        try scene.poster.synchronize(timeout: .patience)
        kill(scene.agentProcess, SIGCONT)
        try post(rounds: 2)
        let (bus, agent) = (scene.bus.residentBytes, residentBytes(of: scene.agentProcess))
        try post(rounds: isLongRun ? 500 : 10)
        #expect(scene.bus.residentBytes - bus < 4 << 20)
        #expect(residentBytes(of: scene.agentProcess) - agent < 4 << 20)
        try scene.post(["com.example.end"])
        kill(-observer.pid, SIGCONT)
        try observer.waitForOutput(containing: "com.example.end\n")
        observer.send(signal: SIGTERM)
        let lines = try observer.wait().lines
        #expect(lines.suffix(3).contains("com.example.end"))
        #expect(lines.contains("com.example.b"))
        // 4,096 individually and then each name once, after what the program and the message under way already had.
        #expect(lines.count < 2 * 4_096 + 4 * 256)
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `the relay closes with the last sandboxed observer, and opens again`(kind: BusKind) throws {
        let scene = try RelayScene(kind, opensRelay: false)
        let client = try RawBusClient(address: scene.bus.address)
        func isOpen() throws -> Bool {
            let body = RawBusClient.stringBody("org.notifybus.Relay1")
            return try client.callBus("NameHasOwner", signature: "s", body: body).body.first == 1
        }
        // Once it has answered, the agent has opened what it needs itself.
        try scene.lifecycle("status")
        #expect(try !isOpen())
        let (threads, descriptors) = (threadCount(of: scene.agentProcess), openDescriptors(of: scene.agentProcess))
        try scene.openRelay()
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.a", in: sandbox)
        try scene.post(["com.example.a"])
        try observer.waitForOutputLines(1)
        // The main thread, which waits for signals, and the one on which everything lives.
        #expect(threadCount(of: scene.agentProcess) == 2)
        observer.send(signal: SIGTERM)
        _ = try observer.wait()
        #expect(try waitUntil { try !isOpen() })
        // There may have been more while the agent had just answered.
        #expect(waitUntil { threadCount(of: scene.agentProcess) <= threads })
        #expect(waitUntil { openDescriptors(of: scene.agentProcess) <= descriptors })
        try scene.openRelay()
        let next = try scene.startWaiting("-f", "com.example.a", in: sandbox)
        try scene.post(["com.example.a"])
        try next.waitForOutputLines(1)
        withExtendedLifetime(sandbox) {}
    }

    @Test func `a program asks again for a relay that the bus could not start`() throws {
        let services = try TemporaryFolder()
        let scene = try RelayScene(.daemon, services: services.path, opensRelay: false)
        let (program, address) = (serviceWord(try productPath("notify-agent")), serviceWord(scene.bus.address))
        try save(
            "[D-BUS Service]\nName=org.notifybus.Relay1\nExec=\(program) --relay --address \(address)\n",
            toFile: "\(services.path)/org.notifybus.Relay1.service"
        )
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.a", "com.example.b.*", in: sandbox)
        try scene.killAgent()
        // It has asked at once, when no agent could open the relay.
        let client = try RawBusClient(address: scene.bus.address)
        var body = RawBody()
        body.append("org.notifybus.Relay1")
        body.append(UInt32(0))
        let answer = try client.callBus("StartServiceByName", signature: "su", body: body.bytes)
        #expect(answer.errorName != nil)
        try scene.startAgentAgain()
        let isHeard = try waitUntil {
            try scene.post(["com.example.b.c"])
            return (try? observer.waitForOutput(containing: "com.example.b.c", timeout: .milliseconds(100))) != nil
        }
        #expect(isHeard)
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `the command that opens the relay asks the next agent if one has left without an answer`(
        kind: BusKind
    ) throws {
        var faults: [String] = []
        // It waits two seconds for the next one. A busy machine may need longer than that.
        for _ in 0..<3 {
            let bus = try PrivateBus(kind)
            var leaving: RawBusClient? = try RawBusClient(address: bus.address)
            var body = RawBody()
            body.append("org.notifybus.Agent1")
            body.append(UInt32(0))
            try #require(try leaving?.callBus("RequestName", signature: "su", body: body.bytes).uint32 == 1)
            let command = try start(productPath("notify-agent"), ["--relay", "--address", bus.address])
            while try leaving?.readMessage().member != "OpenRelay" {}
            leaving = nil
            let agent = try start(
                productPath("notify-agent"),
                ["--address", bus.address, "--config", "/dev/null"],
                environment: withoutDesktop
            )
            defer { agent.send(signal: SIGTERM) }
            let result = try command.wait()
            if result.status == 0 { return }
            faults.append(result.errorOutput)
        }
        Issue.record("\(faults)")
    }
}

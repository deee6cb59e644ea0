// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// `notify-state add` and `swap`: what several programs change at the same time.
@Suite struct CounterTests {
    private func startAgent(on bus: PrivateBus, _ arguments: [String] = []) throws -> RunningCommand {
        let agent = try start(
            productPath("notify-agent"),
            ["--address", bus.address] + arguments,
            environment: withoutDesktop
        )
        try agent.waitForErrorOutput(containing: "ready")
        return agent
    }

    @Test(arguments: anyBusKind())
    func `an agent that has just started may learn a moment later that the name is observed`(kind: BusKind) throws {
        var results: [CommandResult] = []
        // A busy machine may need longer than the 2 seconds that such an agent gets.
        for _ in 0..<3 where results.last?.status != 0 {
            let bus = try PrivateBus(kind)
            let waiting = try bus.startWaiting(["-q", "com.x"])
            waiting.send(signal: SIGSTOP)
            let agent = try startAgent(on: bus)
            defer { agent.send(signal: SIGTERM) }
            let arguments = ["--address", bus.address, "add", "com.x", "5", "--post"]
            let adding = try start(productPath("notify-state"), arguments)
            // Most likely it has been refused by then.
            usleep(300_000)
            waiting.send(signal: SIGCONT)
            results.append(try adding.wait(timeout: .patience))
            if results.last?.status == 0 { #expect(try waiting.wait().status == 0) }
        }
        #expect(results.last?.status == 0 && results.last?.output == "5\n", "\(results)")
    }

    @Test(arguments: anyBusKind())
    func `add prints the sum, subtracts, and refuses what is no state`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try startAgent(on: bus)
        defer { agent.send(signal: SIGTERM) }
        let waiting = try bus.startWaiting(["com.x"])
        for (number, sum) in [("5", "5"), ("0x10", "21"), ("-0x1", "20"), ("-0", "20")] {
            let result = try bus.run("notify-state", ["add", "com.x", number])
            #expect(result.status == 0 && result.output == sum + "\n" && result.errorOutput == "")
        }
        let less = try bus.run("notify-state", ["add", "com.x", "-21"])
        #expect(less.status == 1 && less.errorOutput == "notify-state: the state is 20, and can't be less than 0\n")
        let more = try bus.run("notify-state", ["add", "com.x", "18446744073709551615"])
        #expect(more.status == 1)
        #expect(more.errorOutput == "notify-state: the state is 20, and can't be more than 18446744073709551615\n")
        let nobody = try bus.run("notify-state", ["add", "com.nobody", "1"])
        #expect(nobody.status == 1)
        #expect(nobody.errorOutput == "notify-state: No connection observes 'com.nobody', so it has no state.\n")
        #expect(try bus.run("notify-state", ["add", "com.x", "1", "--post"]).output == "21\n")
        #expect(try waiting.wait().output == "com.x\n")
    }

    @Test(arguments: anyBusKind())
    func `swap sets a state that is what was said, and otherwise says what it is`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try startAgent(on: bus)
        defer { agent.send(signal: SIGTERM) }
        let waiting = try bus.startWaiting(["-f", "com.x"])
        defer { waiting.send(signal: SIGTERM) }
        #expect(try bus.run("notify-state", ["swap", "com.x", "0", "7"]).status == 0)
        let result = try bus.run("notify-state", ["swap", "com.x", "0", "8"])
        #expect(result.status == 1 && result.errorOutput == "notify-state: the state is 7, not 0\n")
        #expect(try bus.run("notify-state", ["com.x"]).output == "7\n")
    }

    @Test(arguments: ["add com.x", "add com.x -", "add com.x 1 2", "swap com.x 1", "swap com.x 1 b", "add com.x --1"])
    func `a wrong command line is a usage error`(line: String) throws {
        let words = line.split(separator: " ").map(String.init)
        let result = try run(productPath("notify-state"), ["--address", nowhere] + words)
        #expect(result.status == 64 && result.errorOutput.hasPrefix("notify-state: "))
    }

    @Test(arguments: busKinds)
    func `each of many additions by twenty scripts counts, whichever agent runs`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let first = try startAgent(on: bus)
        // It observes the name, so that it has a state.
        let waiting = try bus.startWaiting(["-f", "com.example.end"])
        let observer = try bus.startWaiting(["-f", "com.example.count"])
        defer { [waiting, observer].forEach { $0.send(signal: SIGTERM) } }
        let (additions, agents) = isLongRun ? (100, 5) : (10, 1)
        let script = """
            for script in {1..20}; do
                (for i in {1..\(additions)}; do notify-state add -t 60s com.example.count 1 >/dev/null || echo failed; done) &
            done
            wait
            """
        let scripts = try bus.startScript(script)
        var last = first
        for _ in 1...agents {
            let before = try bus.run("notify-state", ["com.example.count"]).output
            try #require(waitUntil { (try? bus.run("notify-state", ["com.example.count"]).output) != before })
            last = try startAgent(on: bus, ["--replace"])
        }
        let result = try scripts.wait(timeout: .patience + .patience)
        #expect(result.output == "" && result.errorOutput == "")
        #expect(try bus.run("notify-state", ["com.example.count"]).output == "\(20 * additions)\n")
        last.send(signal: SIGTERM)
        _ = try last.wait()
    }

    @Test(arguments: anyBusKind())
    func `to wait for the state of an event whose source is off is worth a line, within a second`(kind: BusKind) throws
    {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let file = "\(folder.path)/agent.conf"
        try write("ignore = timezone\n", toFile: file)
        let agent = try startAgent(on: bus, ["--config", file])
        defer { agent.send(signal: SIGTERM) }
        let line =
            "notify-state: 'com.apple.system.timezone' is not posted here: "
            + "the agent does not use its source 'timezone'\n"
        let waiting = try start(
            productPath("notify-state"),
            ["--address", bus.address, "wait", "com.apple.system.timezone"]
        )
        #expect(try waiting.waitForErrorOutput(containing: "\n") == line)
        waiting.send(signal: SIGTERM)
        let asked = try bus.run("notify-state", ["-v", "com.apple.system.timezone"])
        #expect(asked.output == "0\n" && asked.errorOutput == line)
        #expect(try bus.run("notify-state", ["com.apple.system.timezone"]).errorOutput == "")
    }

    private func write(_ text: String, toFile path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0, Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count, close(descriptor) == 0
        else { throw TestSupportError("Cannot write \(path): error \(errno)") }
    }
}

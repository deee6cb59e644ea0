// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

@Suite struct BusLossTests {
    @Test(arguments: busKinds)
    func `the loss of the bus and its return are reported, and the names are heard again`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["-n", "3", "com.example.*"])
        try bus.makeCenter().postOnceConnected("com.example.before")
        try waiting.waitForOutputLines(1)
        let away = "notify-wait: the bus went away; waiting for it to come back\n"
        let back = "notify-wait: the bus is back\n"
        for round in 1...2 {
            let before = String(repeating: away + back, count: round - 1)
            bus.kill()
            try waiting.waitForErrorOutput(containing: before + away)
            try bus.restart()
            try waiting.waitForErrorOutput(containing: before + away + back, timeout: .patience)
            // The report is true: the observer is live now.
            try bus.makeCenter().postOnceConnected(NotifyName("com.example.after.\(round)"))
            try waiting.waitForOutputLines(1 + round)
        }
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.lines == ["com.example.before", "com.example.after.1", "com.example.after.2"])
    }

    // dbus-broker answers before it has written to others, so it is unknown when it has. ConnectionTests has a test for
    // both buses that counts bytes.
    @Test(arguments: busKinds.filter { $0 == .daemon })
    func `everything that a bus passed on before it was killed is heard`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        // Fewer than fit into the socket of an observer that does not read.
        let names = (1...48).map { "com.example.\($0)" }
        let waiting = try bus.startWaiting(["-n", "48", "com.example.*"])
        waiting.send(signal: SIGSTOP)
        try #require(waitUntil { processState(waiting.pid) == "T" })
        let poster = bus.makeCenter()
        for name in names { try poster.postOnceConnected(NotifyName(name)) }
        try poster.synchronize(timeout: .patience)
        bus.kill()
        waiting.send(signal: SIGCONT)
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.lines == names)
    }

    @Test(arguments: busKinds)
    func `the timeout and signals still work if the bus never comes back`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let endless = try bus.startWaiting(["-f", "a"])
        let (result, quiet) = try inTime {
            try bus.restart()
            let quiet = try bus.startWaiting(["-q", "-t", "1s", "a"])
            let timed = try bus.startWaiting(["-t", "1s", "a"])
            bus.kill()
            return (try timed.wait(), quiet)
        } unless: {
            !$0.0.errorOutput.contains("went away")
        }
        #expect(result.status == 2)
        #expect(
            result.errorOutput == """
                notify-wait: the bus went away; waiting for it to come back
                notify-wait: timed out after 0 notifications

                """
        )
        let silent = try quiet.wait()
        #expect(silent.status == 2 && silent.errorOutput == "")
        try endless.waitForErrorOutput(containing: "the bus went away")
        endless.send(signal: SIGINT)
        #expect(try endless.wait().status == 130)
    }

    @Test(arguments: busKinds)
    func `a bus that has ended is reported once, and its return is heard`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["-f", "a"])
        bus.kill()
        unlink(bus.socketPath)
        let ended =
            "notify-wait: nothing listens at the bus's address any more; still waiting (see --exit-with-bus)\n"
        try waiting.waitForErrorOutput(containing: ended)
        try bus.restart()
        try waiting.waitForErrorOutput(containing: "the bus is back")
        try bus.makeCenter().postOnceConnected("a")
        try waiting.waitForOutputLines(1)
        waiting.send(signal: SIGTERM)
        let result = try waiting.wait()
        #expect(result.output == "a\n")
        #expect(
            result.errorOutput
                == "notify-wait: the bus went away; waiting for it to come back\n" + ended
                + "notify-wait: the bus is back\n"
        )
    }

    @Test(arguments: busKinds, [true, false])
    func `--exit-with-bus ends it with 69 once the bus has ended, with its socket or without`(
        kind: BusKind,
        leavesSocket: Bool
    ) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["-f", "--exit-with-bus", "a"])
        try bus.makeCenter().postOnceConnected("a")
        try waiting.waitForOutputLines(1)
        bus.kill()
        if !leavesSocket { unlink(bus.socketPath) }
        let result = try waiting.wait()
        #expect(result.status == 69)
        #expect(result.output == "a\n")
        #expect(result.errorOutput.hasSuffix("notify-wait: the bus has ended\n"))
    }

    @Test(arguments: busKinds)
    func `--exit-with-bus survives the restart of a bus, and a disconnection`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address)
        defer { relay.close() }
        let ready = try Pipe()
        let waiting = try start(
            productPath("notify-wait"),
            ["--address", relay.address, "--ready-fd", "3", "--exit-with-bus", "-n2", "a"],
            descriptors: [3: ready.writeEnd]
        )
        ready.closeWriteEnd()
        #expect(try ready.read() == "\n")
        relay.cutAll()
        try waiting.waitForErrorOutput(containing: "the bus is back")
        try bus.restart()
        try waiting.waitForErrorOutput(containing: "back\nnotify-wait: the bus went away")
        try #require(
            waitUntil(timeout: .patience) {
                try? bus.makeCenter().postOnceConnected("a")
                return (try? waiting.waitForOutputLines(2, timeout: .milliseconds(100))) != nil
            }
        )
        #expect(try waiting.wait().status == 0)
    }

    @Test(arguments: busKinds, [[], ["--retry"]])
    func `when its output is no longer read it ends, although there is no bus`(
        kind: BusKind,
        options: [String]
    ) throws {
        let bus = try PrivateBus(kind)
        if options.isEmpty {
            let output = try Pipe()
            let waiting = try bus.startWaiting(["-f", "a"], output: .descriptor(output.writeEnd))
            output.closeWriteEnd()
            bus.kill()
            try waiting.waitForErrorOutput(containing: "went away")
            output.closeReadEnd()
            #expect(try waiting.wait().status == 0)
        } else {
            bus.kill()
            let output = try Pipe()
            let waiting = try start(
                productPath("notify-wait"),
                ["--address", bus.address, "-f", "a"] + options,
                output: .descriptor(output.writeEnd)
            )
            output.closeWriteEnd()
            try waiting.waitForErrorOutput(containing: "Waiting for the bus")
            output.closeReadEnd()
            let result = try waiting.wait()
            #expect(result.status == 0 && result.errorOutput.hasSuffix("Waiting for the bus.\n"))
        }
    }

    @Test(arguments: busKinds)
    func `the command continues when the bus goes away`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = "echo begun; read line; echo \"$line\""
        let waiting = try bus.startWaiting(["a", "--", "sh", "-c", script], input: .pipe)
        try bus.makeCenter().postOnceConnected("a")
        try waiting.waitForOutput(containing: "begun\n")
        bus.kill()
        try waiting.waitForErrorOutput(containing: "the bus went away")
        try waiting.writeInput("on\n")
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.output == "begun\non\n")
    }

    @Test(arguments: busKinds)
    func `while the bus does not answer the command waits, and misses nothing`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["a"])
        let posting = try start(productPath("notify-post"), ["--address", bus.address, "-"])
        try posting.writeInput("b\n")
        bus.stop()
        try posting.writeInput("a\n")
        posting.closeInput()
        // Its timeout ends it while the bus is stopped.
        let other = try #require(try? waitWhileStopped(bus))
        #expect(other == 143)
        bus.resume()
        #expect(try posting.wait().status == 0)
        #expect(try waiting.wait().status == 0)
    }

    /// A command that connects now gets no answer, and can be interrupted.
    private func waitWhileStopped(_ bus: PrivateBus) throws -> Int32 {
        let command = try start(productPath("notify-wait"), ["--address", bus.address, "a"])
        command.send(signal: SIGTERM)
        return try command.wait().status
    }
}

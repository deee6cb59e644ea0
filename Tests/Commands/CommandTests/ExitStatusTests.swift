// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore
import TestSupport
import Testing

@Suite struct ExitStatusTests {
    @Test(arguments: anyBusKind())
    func `success is 0`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["com.example.done"])
        let posting = try bus.run("notify-post", ["com.example.done"])
        #expect(posting.status == 0)
        #expect(posting.output == "" && posting.errorOutput == "")
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.output == "com.example.done\n" && result.errorOutput == "")
    }

    @Test(arguments: anyBusKind(), [["-t", "100ms"], ["-t", "0"], ["--timeout=0.1"], ["-f", "-t", "100ms"]])
    func `a timeout is 2 and a sentence; with -q just 2`(kind: BusKind, options: [String]) throws {
        let bus = try PrivateBus(kind)
        let result = try inTime {
            try bus.run("notify-wait", options + ["com.example.never"])
        } unless: {
            $0.errorOutput.contains("the bus did not answer")
        }
        #expect(result.status == 2)
        #expect(result.output == "")
        #expect(result.errorOutput == "notify-wait: timed out after 0 notifications\n")
        let quiet = try bus.run("notify-wait", options + ["-q", "com.example.never"])
        #expect(quiet.status == 2)
        #expect(quiet.output == "" && quiet.errorOutput == "")
    }

    @Test(arguments: anyBusKind())
    func `what arrived before the timeout is printed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = "notify-wait -n2 -t 2s com.example.half --then 'notify-post com.example.half'"
        let half = try inTime {
            try bus.script(script)
        } unless: {
            $0.output.isEmpty
        }
        #expect(half.status == 2)
        #expect(half.output == "com.example.half\n")
        #expect(half.errorOutput == "notify-wait: timed out after 1 notification\n")
    }

    @Test(arguments: commands)
    func `no bus is 69 and a sentence`(command: String) throws {
        let bare: [String: String?] = [
            "DBUS_SESSION_BUS_ADDRESS": nil, "XDG_RUNTIME_DIR": nil, "DBUS_SYSTEM_BUS_ADDRESS": nowhere, "DISPLAY": nil,
        ]
        let cases = [
            (["--address", nowhere], "cannot be reached"), (["--address", "nonsense"], "cannot be reached"),
            (["--system"], "cannot be reached"), (["--session"], "There is no session bus"),
            ([], "There is no session bus"),
        ]
        for (options, reason) in cases {
            let result = try run(productPath(command), options + ["com.example.x"], environment: bare)
            #expect(result.status == 69)
            #expect(result.output == "")
            #expect(result.errorOutput.hasPrefix("\(command): ") && result.errorOutput.contains(reason))
        }
    }

    @Test func `without a bus, names on standard input are not read`() throws {
        // The input stays open: the command must not wait for its end.
        let posting = try start(productPath("notify-post"), ["--address", nowhere, "-"])
        let result = try posting.wait()
        #expect(result.status == 69)
    }

    @Test(arguments: anyBusKind())
    func `a signal that ends it is 128 plus its number`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for (signal, status) in [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)] as [(Int32, Int32)] {
            for options in [[], ["-f"], ["-q", "-t", "1h"]] {
                let waiting = try bus.startWaiting(options + ["com.example.never"])
                waiting.send(signal: signal)
                let result = try waiting.wait()
                #expect(result.status == status)
                #expect(result.output == "" && result.errorOutput == "")
            }
            let posting = try start(productPath("notify-post"), ["--address", bus.address, "-"])
            posting.send(signal: signal)
            #expect(try posting.wait().status == status)
        }
    }

    @Test(arguments: anyBusKind(), commands)
    func `a signal also ends it while the bus does not answer`(kind: BusKind, command: String) throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        defer { bus.resume() }
        for (signal, status) in [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)] {
            let running = try start(productPath(command), ["--address", bus.address, "com.example.x"])
            try #require(waitUntil { threadCount(of: running.pid) > 1 || processState(running.pid) == "S" })
            running.send(signal: signal)
            #expect(try running.wait().status == status)
        }
    }

    @Test(arguments: anyBusKind())
    func `a signal that was ignored before it started is still ignored`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startScript("trap '' HUP INT; exec notify-wait -v com.example.x")
        try waiting.waitForErrorOutput(containing: "the observer is live")
        waiting.send(signal: SIGHUP)
        waiting.send(signal: SIGINT)
        // It would notice the signals, which are already pending, before the post.
        try bus.makeCenter().postOnceConnected("com.example.x")
        #expect(try waiting.wait().status == 0)
    }

    @Test(arguments: commands)
    func `help and version go to standard output and need no bus`(command: String) throws {
        let questions = [["--help"], ["-h"], ["com.example.x", "--help", "--address", nowhere]]
        for question in questions {
            let result = try run(productPath(command), question)
            #expect(result.status == 0)
            #expect(result.errorOutput == "")
            #expect(result.output.hasPrefix("Usage: \(command) "))
            #expect(result.lines.allSatisfy { $0.utf8.count <= 80 })
            for option in ["--session", "--system", "--address", "--quiet", "--verbose", "--help", "--version"] {
                #expect(result.output.contains("\(option)"))
            }
            for status in ["0", "1", "64", "69"] {
                #expect(result.lines.contains { $0.hasPrefix("  \(status) ") })
            }
        }
        let version = try run(productPath(command), ["--version"])
        #expect(version.status == 0)
        #expect(version.output == "\(command) (NotifyBus) \(notifyBusVersion)\n")
        #expect(version.errorOutput == "")
    }

    @Test(arguments: commands)
    func `help that can't be written is a failure`(command: String) throws {
        let result = try run("bash", ["-c", "\"$1\" --help >/dev/full", "bash", productPath(command)])
        #expect(result.status == 1)
        #expect(result.errorOutput == "\(command): can't write to standard output: No space left on device\n")
    }
}

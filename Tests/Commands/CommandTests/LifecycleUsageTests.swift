// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import TestSupport
import Testing

@Suite struct LifecycleUsageTests {
    private func lifecycle(_ arguments: [String]) throws -> CommandResult {
        // An invalid command line is refused before anything is requested.
        try run(productPath("notify-lifecycle"), ["--address", "unix:path=/nonexistent/bus"] + arguments)
    }

    @Test func `an invalid command line is refused with a sentence`() throws {
        let cases: [(arguments: [String], sentence: String)] = [
            ([], "missing command; use list, status"), ([""], "unknown command ''"),
            (["lits"], "did you mean 'list'?"), (["sus"], "did you mean 'suspend'?"),
            (["s"], "unknown command 's'"), (["pid:3"], "unknown command 'pid:3'"),
            (["list", "pid:3"], "doesn't take a TARGET"), (["watch", "--", "x"], "doesn't take a TARGET"),
            (["background"], "requires a TARGET"), (["suspend", "--freeze"], "requires a TARGET"),
            (["resume", "--freeze", "3"], "--freeze can only be used with 'suspend'"),
            (["list", "--freeze"], "--freeze can only be used with"),
            (["background", "--json", "3"], "--json can't be used with 'background'"),
            (["list", "-t", "soon"], "is not a duration"),
            (["list", "--frezee"], "did you mean '--freeze'?"),
        ]
        for (arguments, sentence) in cases {
            let result = try lifecycle(arguments)
            #expect(result.status == 64)
            #expect(result.output == "")
            #expect(result.errorOutput.hasPrefix("notify-lifecycle: "))
            #expect(result.errorOutput.contains(sentence))
        }
    }

    @Test func `an invalid target is refused, and nothing is changed`() throws {
        let targets = [
            "", "frog", "pid:", "pid:0", "pid:-1", "pid:+1", "pid:1x", "pid: 1", "0", "4294967296", "2147483648", ":",
            ":1",
            ":1.", ":.1", ":1.2.3", ":1.a", "app:", "App:x", "org.example.Editor", "٣",
        ]
        for target in targets {
            let result = try lifecycle(["background", "pid:1", target])
            #expect(result.status == 64)
            #expect(result.errorOutput.contains("'\(target)' is not a TARGET; use pid:N"))
        }
    }

    @Test(arguments: ["list", "status", "watch", "background 1"])
    func `a missing bus is reported, with status 69`(arguments: String) throws {
        let result = try lifecycle(arguments.split(separator: " ").map(String.init))
        #expect(result.status == 69)
        #expect(result.output == "")
        #expect(result.errorOutput.contains("cannot be reached"))
    }

    @Test(arguments: anyBusKind(), ["list", "status", "watch", "background 1 2"])
    func `a missing agent is reported, with status 69 and how to start one`(kind: BusKind, arguments: String) throws {
        let bus = try PrivateBus(kind)
        let words = arguments.split(separator: " ").map(String.init)
        let result = try run(
            productPath("notify-lifecycle"),
            words,
            environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address]
        )
        #expect(result.status == 69)
        #expect(result.output == "")
        let sentence = "notify-lifecycle: no lifecycle agent runs on this bus; start one with notify-agent"
        #expect(result.errorOutput == sentence + "\n")
        #expect(try bus.lifecycle("list").errorOutput == "\(sentence) --address '\(bus.address)'\n")
    }

    @Test(arguments: anyBusKind())
    func `if the bus does not answer, the command exits with 2`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        defer { bus.resume() }
        for arguments in [["list"], ["watch"], ["resume", "1"]] {
            let result = try run(
                productPath("notify-lifecycle"),
                ["--address", bus.address, "-t", "100ms"] + arguments
            )
            #expect(result.status == 2)
            #expect(result.errorOutput.contains("in time"))
        }
    }

    @Test func `help and version go to standard output and need no bus`() throws {
        for question in [["--help"], ["-h"], ["watch", "-h"]] {
            let help = try lifecycle(question)
            #expect(help.status == 0)
            #expect(help.errorOutput == "")
            #expect(help.output.hasPrefix("Usage: notify-lifecycle "))
            #expect(help.lines.allSatisfy { $0.utf8.count <= 80 })
            for verb in ["list", "status", "watch", "foreground", "background", "suspend", "resume"] {
                #expect(help.lines.contains { $0.hasPrefix("  \(verb) ") })
            }
        }
        #expect(try lifecycle(["--version"]).output == "notify-lifecycle (NotifyBus) \(notifyBusVersion)\n")
    }
}

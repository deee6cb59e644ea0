// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct LifecycleLaunchesTests {
    /// The answer to Status, with these entries.
    private func status(_ entries: [[(String, Wire)]]) -> [Wire] {
        [
            .dictionary([
                ("version", .string("1")), ("launches", .array(element: "a{sv}", entries.map { .dictionary($0) })),
            ])
        ]
    }

    private func entry(
        _ name: String,
        names: [String] = ["com.example.go"],
        prefixes: [String] = [],
        action: String = "start",
        program: String = "job.service",
        state: String = "idle",
        reason: String = "",
        starts: UInt64 = 0,
        failures: UInt64 = 0,
        due: UInt32 = 0,
        result: String = ""
    ) -> [(String, Wire)] {
        func list(_ texts: [String]) -> Wire { .array(element: "s", texts.map { .string($0) }) }
        return [
            ("name", .string(name)), ("file", .string("/etc/xdg/notifybus/launch.d/\(name).conf")),
            ("names", list(names)), ("prefixes", list(prefixes)), ("action", .string(action)),
            ("program", .string(program)), ("state", .string(state)), ("reason", .string(reason)),
            ("starts", .uint64(starts)), ("failures", .uint64(failures)), ("due", .uint32(due)),
            ("result", .string(result)),
        ]
    }

    private var some: [[(String, Wire)]] {
        [
            entry("backup", names: [], state: "broken", reason: "backup.conf:2: there is no '='"),
            entry("index", prefixes: ["com.example.a."], state: "limited", starts: 1_234, due: 7, result: "done"),
            entry("nas", program: "mount /nas", state: "running", starts: 2, failures: 1, result: "done"),
        ]
    }

    @Test(arguments: anyBusKind())
    func `launches prints a table; with -v also each entry's names and file`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus, replying: status(some))
        let table = """
            ENTRY   STARTS       STATE    COUNT  FAILED  DUE  LAST
            backup  job.service  broken       0       0    0  backup.conf:2: there is no '='
            index   job.service  limited   1234       0    7  done
            nas     mount /nas   running      2       1    0  done

            """
        let result = try bus.lifecycle("launches")
        #expect(result.status == 0 && result.errorOutput.isEmpty)
        #expect(result.output == table)
        let lines = table.split(separator: "\n").map { String($0) }
        func file(_ name: String) -> String { "    in /etc/xdg/notifybus/launch.d/\(name).conf" }
        #expect(
            try bus.lifecycle("launches", "-v").lines == [
                lines[0], lines[1], file("backup"), lines[2], "    com.example.go", "    com.example.a.*",
                file("index"), lines[3], "    com.example.go", file("nas"),
            ]
        )
        let quiet = try bus.lifecycle("launches", "-q").lines
        #expect(quiet.count == 3 && quiet[1] == "index   job.service  limited  1234  0  7  done")
        #expect(agent.calls.elements.map(\.member) == ["Status", "Status", "Status"])
    }

    @Test(arguments: anyBusKind())
    func `launches --json prints everything that the agent says, one entry per line`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let odd = entry("o\u{1b}\"d", program: "\u{e9}", starts: .max, result: "a\nb")
        let agent = try FakeAgent(on: bus, replying: status([odd, some[1]]))
        let result = try bus.lifecycle("launches", "--json")
        #expect(result.status == 0)
        #expect(
            result.output == #"""
                {"name":"o\u001b\"d","file":"/etc/xdg/notifybus/launch.d/o\u001b\"d.conf","names":["com.example.go"],\#
                "prefixes":[],"action":"start","program":"é","unit":"","state":"idle","reason":"",\#
                "starts":18446744073709551615,"failures":0,"due":0,"result":"a\nb"}
                {"name":"index","file":"/etc/xdg/notifybus/launch.d/index.conf","names":["com.example.go"],\#
                "prefixes":["com.example.a."],"action":"start","program":"job.service","unit":"","state":"limited","reason":"",\#
                "starts":1234,"failures":0,"due":7,"result":"done"}

                """#
        )
        // The contents of files can't control a terminal.
        #expect(try bus.lifecycle("launches", "-q").lines.first?.hasPrefix(#"o\x1b"d "#) == true)
        #expect(agent.calls.count == 2)
    }

    @Test(arguments: anyBusKind(), [80, 60] as [UInt16])
    func `on a terminal the table of entries fits, whatever they start and whatever failed`(
        kind: BusKind,
        columns: UInt16
    ) throws {
        let bus = try PrivateBus(kind)
        let long = entry(
            "an-entry-with-quite-a-long-name-that-somebody-chose",
            program: "/usr/bin/some-program --with --many=options and arguments that --end",
            state: "starting",
            starts: 1_000_000,
            failures: 999_999,
            due: 4_096,
            result: "Unit some.service has a bad unit file setting, and this goes on and on."
        )
        let agent = try FakeAgent(on: bus, replying: status(some + [long]))
        for hasColors in [true, false] {
            let terminal = try PseudoTerminal(columns: columns)
            let command = try start(
                productPath("notify-lifecycle"),
                ["--address", bus.address, "launches"],
                environment: ["TERM": "xterm", "NO_COLOR": hasColors ? nil : "1"],
                output: .descriptor(terminal.end)
            )
            terminal.closeEnd()
            #expect(try command.wait().status == 0)
            let output = try terminal.readAll()
            #expect(output.contains("\u{1b}[32mrunning\u{1b}[0m") == hasColors)
            #expect(output.contains("\u{1b}") == hasColors)
            let plain = output.replacing(#/\u{1b}\[[0-9]*m/#, with: "")
            let lines = plain.split(separator: "\r\n")
            #expect(lines.count == 5)
            #expect(lines.allSatisfy { $0.count <= columns }, "\(plain)")
            #expect(plain.contains(" starting ") && plain.contains("4096") && plain.contains("DUE"))
        }
        #expect(agent.calls.count == 2)
    }

    @Test(arguments: anyBusKind())
    func `launches prints no entries if there are none, or if the agent does not know about them`(kind: BusKind) throws
    {
        let bus = try PrivateBus(kind)
        let none = [Wire.dictionary([("version", .string("1"))])]
        for answer in [status([]), none] {
            let agent = try FakeAgent(on: bus, replying: answer)
            #expect(try bus.lifecycle("launches").lines.count == 1)
            #expect(try bus.lifecycle("launches", "-q").output == "")
            #expect(try bus.lifecycle("launches", "--json").output == "")
            try agent.die()
            try waitForRelease(of: FakeAgent.name, on: bus)
        }
    }
}

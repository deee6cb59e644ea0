// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct LifecycleListTests {
    @Test(arguments: anyBusKind())
    func `list is a table by process and then by connection`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let now = UInt64(time(nil))
        let observers = [
            FakeObserver(name: ":1.10", pid: 4711, state: "background", dropped: 123_456, since: now - 7_300),
            FakeObserver(name: ":1.9", pid: 4711, names: 12, since: now - 200),
            FakeObserver(
                name: ":1.20",
                pid: 80,
                program: "a",
                application: "",
                state: "suspended",
                pending: 2,
                since: now - 300_000
            ),
        ]
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list(observers))
        let result = try bus.lifecycle("list")
        #expect(result.status == 0)
        #expect(
            result.output == """
                 PID  PROGRAM  APPLICATION         STATE       BY  NAMES  PENDING  DROPPED  SINCE
                  80  a        -                   suspended   -       3        2        0  3d
                4711  editor   org.example.Editor  foreground  -      12        0        0  3m
                4711  editor   org.example.Editor  background  -       3        0   123456  2h

                """
        )
        #expect(result.errorOutput == "")
        #expect(agent.calls.elements.map(\.member) == ["List"])
    }

    @Test(arguments: anyBusKind())
    func `list prints no header with -q, and connections and users with -v`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list([FakeObserver()]))
        let line = "100  editor  org.example.Editor  foreground  -  3  0  0  -\n"
        #expect(try bus.lifecycle("list", "-q").output == line)
        let detailed = try bus.lifecycle("list", "-v")
        #expect(detailed.lines.first?.hasPrefix("PID  CONNECTION   UID  PROGRAM  APPLICATION ") == true)
        #expect(detailed.lines.last?.hasPrefix("100  :1.5        1000  editor   org.example.Editor  ") == true)
        #expect(agent.calls.count == 2)
    }

    @Test(arguments: anyBusKind())
    func `on a bus without observers, list prints only the header`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list([]))
        #expect(try bus.lifecycle("list").output.hasPrefix("PID  PROGRAM"))
        #expect(try bus.lifecycle("list").lines.count == 1)
        #expect(try bus.lifecycle("list", "-q").output == "")
        #expect(try bus.lifecycle("list", "--json").output == "")
        #expect(agent.calls.count == 4)
    }

    @Test(arguments: anyBusKind())
    func `list -v prints the names, and so does --json`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let observer = FakeObserver(
            names: 5,
            more: [
                ("observed", .array(element: "s", [.string("com.example.a"), .string("b\u{1b}\nc")])),
                ("prefixes", .array(element: "s", [.string("com.example."), .string("")])),
            ]
        )
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list([observer]))
        let names = ["com.example.a", #"b\x1b\nc"#, "com.example.*", "every name", "and 1 more"]
        #expect(try Array(bus.lifecycle("list", "-v").lines.dropFirst(2)) == names.map { "    " + $0 })
        #expect(try bus.lifecycle("list").lines.count == 2)
        let json = #""observed":["com.example.a","b\u001b\nc"],"prefixes":["com.example.",""]}"#
        #expect(try bus.lifecycle("list", "--json").output.hasSuffix(json + "\n"))
        #expect(agent.calls.count == 3)
    }

    @Test(arguments: anyBusKind(), [80, 100, 60] as [UInt16])
    func `on a terminal the table fits, with ids of 60 characters, and has colours unless NO_COLOR is set`(
        kind: BusKind,
        columns: UInt16
    ) throws {
        let bus = try PrivateBus(kind)
        let application = "org.example." + String(repeating: "x", count: 41) + ".Viewer"
        let observers = [
            FakeObserver(pid: 4_000_000, program: "a-long-program", application: application, state: "suspended"),
            FakeObserver(more: [("decider", .string("person")), ("focused", .bool(true))]),
        ]
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list(observers))
        for options in [["list"], ["list", "-v"]] {
            for hasColors in [true, false] {
                let terminal = try PseudoTerminal(columns: columns)
                let command = try start(
                    productPath("notify-lifecycle"),
                    ["--address", bus.address] + options,
                    environment: ["TERM": "xterm", "NO_COLOR": hasColors ? nil : "1"],
                    output: .descriptor(terminal.end)
                )
                terminal.closeEnd()
                #expect(try command.wait().status == 0)
                let output = try terminal.readAll()
                #expect(output.contains("\u{1b}[32mforeground\u{1b}[0m") == hasColors)
                #expect(output.contains("\u{1b}") == hasColors)
                let plain = output.replacing(#/\u{1b}\[[0-9]*m/#, with: "")
                let lines = plain.split(separator: "\r\n")
                #expect(lines.count == 3)
                #expect(lines.allSatisfy { $0.count <= columns }, "\(plain)")
                #expect(plain.contains(".Viewer ") && plain.contains("suspended"))
            }
        }
        // A pipe gets everything, without colours.
        #expect(try bus.lifecycle("list").output.contains(application))
        #expect(agent.calls.count == 5)
    }

    @Test(arguments: anyBusKind())
    func `a stopped observer is marked, and the mark is explained only then`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let observers = [FakeObserver(state: "suspended", parked: true), FakeObserver(pid: 101)]
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list(observers))
        let result = try bus.lifecycle("list")
        #expect(result.output.contains(" suspended* "))
        #expect(result.output.contains(" foreground "))
        #expect(result.errorOutput.hasPrefix("notify-lifecycle: * the process is stopped"))
        #expect(result.errorOutput.split(separator: "\n").count == 1)
        let quiet = try bus.lifecycle("list", "-q")
        #expect(quiet.output.contains(" suspended* "))
        #expect(quiet.errorOutput == "")
        #expect(agent.calls.count == 2)
    }

    @Test(arguments: anyBusKind())
    func `list --json prints everything that the agent says, one observer per line`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let observers = [
            FakeObserver(name: ":1.7", pid: 200, parked: true, dropped: .max, since: 1_700_000_000),
            FakeObserver(
                program: "a \"b\"\n\u{1b}\u{e9}",
                application: "",
                more: [
                    ("offset", .int32(-5)), ("known", .dictionary([("a", .bool(true))])),
                    ("cgroups", .array(element: "s", [.string("x"), .string("y")])),
                ]
            ),
        ]
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list(observers))
        let result = try bus.lifecycle("list", "--json")
        #expect(result.status == 0)
        #expect(
            result.output == #"""
                {"name":":1.5","pid":100,"uid":1000,"program":"a \"b\"\n\u001bé","application":"","state":"foreground",\#
                "parked":false,"names":3,"pending":0,"dropped":0,"since":0,"cgroups":["x","y"],"known":{"a":true},\#
                "offset":-5}
                {"name":":1.7","pid":200,"uid":1000,"program":"editor","application":"org.example.Editor",\#
                "state":"foreground","parked":true,"names":3,"pending":0,"dropped":18446744073709551615,\#
                "since":1700000000}

                """#
        )
        #expect(agent.calls.count == 1)
    }

    @Test(arguments: anyBusKind())
    func `names chosen by observers can't control a terminal`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let observer = FakeObserver(program: "\u{1b}[2J\n", application: "\u{202e}x", state: "\u{7}")
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list([observer]))
        let result = try bus.lifecycle("list", "-q")
        #expect(result.output == "100  \\x1b[2J\\n  \\u{202e}x  \\x07  -  3  0  0  -\n")
        #expect(agent.calls.count == 1)
    }

    @Test(arguments: anyBusKind())
    func `status prints since when as a time, and a number that is not a time as a number`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for (since, pattern) in [(1_700_000_000, "since: 2023-11-1"), (.max, "since: 18446744073709551615\n")]
            as [(UInt64, String)]
        {
            let agent = try FakeAgent(on: bus, replying: [.dictionary([("since", .uint64(since))])])
            #expect(try bus.lifecycle("status").output.hasPrefix(pattern))
            try agent.die()
            try waitForRelease(of: FakeAgent.name, on: bus)
        }
    }

    @Test(arguments: anyBusKind())
    func `status prints a line for each source; list and watch print who decided, and the facts`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        func source(_ name: String, _ isLive: Bool, _ reason: String, _ fact: String, _ count: UInt64) -> Wire {
            .dictionary([
                ("name", .string(name)), ("live", .bool(isLive)), ("reason", .string(reason)), ("fact", .string(fact)),
                ("facts", .uint64(count)),
            ])
        }
        let sources = [
            source("logind", true, "", "session 2 active\u{1b}", 1), source("x11", false, "$DISPLAY is not set", "", 0),
            source("freezer", true, "", "", 0),
        ]
        let observer = FakeObserver(more: [("decider", .string("logind")), ("focused", .bool(true))])
        let agent = try FakeAgent(on: bus) { call in
            if call.member == "List" { return .reply(FakeObserver.list([observer])) }
            return .reply([.dictionary([("sources", .array(element: "a{sv}", sources)), ("zeal", .uint32(1))])])
        }
        #expect(
            try bus.lifecycle("status").output == """
                zeal:    1
                sources: logind   live  1 fact: session 2 active\\x1b
                         x11      off   0 facts: $DISPLAY is not set
                         freezer  live  0 facts

                """
        )
        #expect(
            try bus.lifecycle("list").output == """
                PID  PROGRAM  APPLICATION         STATE       BY      NAMES  PENDING  DROPPED  SINCE
                100  editor   org.example.Editor  foreground  logind      3        0        0  -

                """
        )
        #expect(try bus.lifecycle("list", "-v").output.contains("  STATE       BY      FOCUS  NAMES"))
        #expect(try bus.lifecycle("list", "--json").output.contains(#""since":0,"decider":"logind","focused":true}"#))
        let (plain, detailed) = (try bus.startLifecycle("watch"), try bus.startWatching())
        let json = try bus.startWatching("--json")
        // Facts are details.
        try agent.emit([.string("x11"), .string("process 7")], member: "FactChanged")
        try agent.emit(stateChange(":1.5", 7, "", "foreground", "background"))
        try detailed.waitForOutput(containing: " x11: process 7\n")
        try json.waitForOutput(containing: #""source":"x11","fact":"process 7"}"# + "\n")
        plain.send(signal: SIGTERM)
        #expect(try plain.wait().output.contains("x11") == false)
    }

    @Test(arguments: anyBusKind())
    func `status prints everything that the agent says, known or not`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let states: [(String, Wire)] = [("foreground", .uint32(2)), ("background", .uint32(1))]
        let fields: [(String, Wire)] = [
            ("states", .dictionary(states)), ("sources", .array(element: "s", [.string("cgroup"), .string("proc")])),
            ("something-new", .int32(-1)), ("polls", .bool(false)), ("pid", .uint32(42)), ("version", .string("0.1.0")),
            ("empty", .array(element: "s", [])),
        ]
        let agent = try FakeAgent(on: bus, replying: [.dictionary(fields)])
        let result = try bus.lifecycle("status")
        #expect(result.status == 0)
        #expect(
            result.output == """
                version:       0.1.0
                pid:           42
                empty:         none
                polls:         no
                something-new: -1
                sources:       cgroup, proc
                states:        background 1, foreground 2

                """
        )
        let json = try bus.lifecycle("status", "--json")
        #expect(
            json.output == #"""
                {"version":"0.1.0","pid":42,"empty":[],"polls":false,"something-new":-1,"sources":["cgroup","proc"],\#
                "states":{"foreground":2,"background":1}}

                """#
        )
        #expect(agent.calls.elements.map(\.member) == ["Status", "Status"])
    }
}

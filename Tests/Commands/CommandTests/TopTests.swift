// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// `notify-top`, on a terminal and without.
@Suite struct TopTests {
    private func start(
        _ bus: PrivateBus,
        on terminal: PseudoTerminal,
        environment: [String: String?] = ["TERM": "xterm", "NO_COLOR": nil]
    ) throws -> RunningCommand {
        let command = try TestSupport.start(
            productPath("notify-top"),
            // Its length must not matter: the first of two has no bus.
            ["--address", "unix:path=/nonexistent/\(String(repeating: "x", count: 60));\(bus.address)"],
            environment: environment,
            input: .descriptor(terminal.end),
            output: .descriptor(terminal.end)
        )
        terminal.closeEnd()
        return command
    }

    @Test(arguments: anyBusKind())
    func `it shows what is posted, escaped and counted, and q ends it and gives the terminal back`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let terminal = try PseudoTerminal()
        let top = try start(bus, on: terminal)
        var screen = try terminal.read(until: "Observers unknown")
        #expect(screen.hasPrefix("\u{1b}[?1049h"))
        let center = bus.makeCenter()
        for name in ["com.example.b", "a\u{1b}]0;x\u{7}", "com.example.b"] {
            try center.postOnceConnected(NotifyName(name))
        }
        screen = try terminal.read(until: "3 posts of 2 names")
        screen += try terminal.read(until: "com.example.b")
        #expect(screen.contains(#"a\x1b]0;x\x07"#) && !screen.contains("]0;x\u{7}"))
        // The poster is this process, and the bus says so a moment later.
        if !screen.contains(" \(getpid())  ") { screen += try terminal.read(until: " \(getpid())  ") }
        try terminal.write("q")
        #expect(try top.wait().status == 0)
        #expect(try terminal.readAll().hasSuffix("\u{1b}[?25h\u{1b}[?1049l"))
    }

    @Test(arguments: anyBusKind())
    func `a signal kills it once it has given the terminal back`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let terminal = try PseudoTerminal()
        let top = try start(bus, on: terminal)
        _ = try terminal.read(until: "Observers unknown")
        top.send(signal: SIGTERM)
        let result = try top.wait()
        #expect(result.status == 143 && !result.exitedNormally)
        #expect(try terminal.readAll().hasSuffix("\u{1b}[?25h\u{1b}[?1049l"))
    }

    @Test(arguments: anyBusKind())
    func `it ends when its terminal is gone, also if that is not its controlling terminal`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let terminal = try PseudoTerminal()
        let top = try start(bus, on: terminal)
        _ = try terminal.read(until: "Observers unknown")
        terminal.hangUp()
        let result = try top.wait()
        #expect(result.status == 128 + SIGHUP && !result.exitedNormally)
    }

    @Test(arguments: busKinds)
    func `while its terminal takes no output it does not grow, and what was left out is counted`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let terminal = try PseudoTerminal()
        let top = try start(bus, on: terminal)
        _ = try terminal.read(until: "Observers unknown")
        // ^S.
        try terminal.write("\u{13}")
        let center = bus.makeCenter()
        func post(_ numbers: Range<Int>) throws {
            for number in numbers {
                try center.postOnceConnected(NotifyName("com.example.number.\(number)"))
                if number % 1_000 == 0 { try center.synchronize(timeout: .patience) }
            }
            try center.synchronize(timeout: .patience)
        }
        try post(0..<12_000)
        // Once it has read them all, and shown it, it is stopped again.
        try terminal.write("\u{11}")
        _ = try terminal.read(until: "12000 posts of 10000 names and 2000 of other names")
        try terminal.write("\u{13}")
        // Names that it has not counted yet take their share, and so may some that it has yet to read.
        try post(12_000..<36_000)
        let before = residentBytes(of: top.pid)
        let more = isLongRun ? 240_000 : 80_000
        try post(36_000..<36_000 + more)
        let growth = residentBytes(of: top.pid) - before
        #expect(growth < more * 50, "\(growth) bytes; if it kept all \(more) names, \(more * 75)")
        // ^Q.
        try terminal.write("\u{11}")
        let counts = "\(36_000 + more) posts of 10000 names and \(26_000 + more) of other names"
        let screen = try terminal.read(until: counts)
        #expect(!screen.isEmpty)
        top.send(signal: SIGTERM)
        _ = try top.wait()
    }

    @Test(arguments: anyBusKind(), [(20, 5), (40, 2), (7, 1)])
    func `on a small terminal no line is longer than it is wide, and there are no more than it has`(
        kind: BusKind,
        size: (columns: Int, lines: Int)
    ) throws {
        let bus = try PrivateBus(kind)
        let application = "org.example." + String(repeating: "x", count: 41) + ".Viewer"
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list([FakeObserver(application: application)]))
        let terminal = try PseudoTerminal(columns: UInt16(size.columns), lines: UInt16(size.lines))
        let top = try start(bus, on: terminal, environment: ["TERM": "xterm", "NO_COLOR": "1"])
        var screen = try terminal.read(until: "\u{1b}[J")
        for key in ["\t", "\t", "\t", "s"] {
            try bus.makeCenter().postOnceConnected(NotifyName(String(repeating: "n", count: 200)))
            try terminal.write(key)
            screen += try terminal.read(until: "\u{1b}[J")
        }
        top.send(signal: SIGTERM)
        _ = try top.wait()
        screen += try terminal.readAll()
        #expect(screen.hasPrefix("\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l"))
        for page in screen.split(separator: "\u{1b}[H").dropFirst() {
            // The terminal adds a carriage return of its own.
            let lines = page.replacing(#/\u{1b}\[[?0-9]*[a-zA-Z]/#, with: "").replacing("\r\r\n", with: "\n").split(
                separator: "\n",
                omittingEmptySubsequences: false
            )
            #expect(lines.count <= size.lines, "\(lines)")
            #expect(lines.allSatisfy { $0.count <= size.columns }, "\(lines)")
        }
        #expect(agent.calls.count > 0)
    }

    @Test(arguments: anyBusKind())
    func `why b finds no other bus can be read, all of it`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let terminal = try PseudoTerminal()
        let top = try start(
            bus,
            on: terminal,
            environment: [
                "TERM": "xterm", "NO_COLOR": "1", "DBUS_SESSION_BUS_ADDRESS": nowhere,
            ]
        )
        _ = try terminal.read(until: "Observers unknown")
        try terminal.write("b")
        let screen = try terminal.read(until: "No such file or directory.")
        let text = screen.replacing(#/\u{1b}\[[?0-9]*[a-zA-Z]/#, with: "").split(whereSeparator: \.isWhitespace)
            .joined(separator: " ")
        #expect(text.contains("The session bus cannot be reached: Failed to connect to socket /nonexistent/bus: No"))
        top.send(signal: SIGTERM)
        _ = try top.wait()
    }

    @Test(arguments: anyBusKind())
    func `b passes over a bus that it could not reach, and finds the way back`(kind: BusKind) throws {
        let (bus, other) = (try PrivateBus(kind), try PrivateBus(kind))
        let terminal = try PseudoTerminal()
        let top = try start(
            bus,
            on: terminal,
            environment: [
                "TERM": "xterm", "NO_COLOR": "1", "DBUS_SESSION_BUS_ADDRESS": other.address,
                "DBUS_SYSTEM_BUS_ADDRESS": nowhere,
            ]
        )
        _ = try terminal.read(until: "Observers unknown")
        // Of a long address it shows the end.
        for text in ["session bus", "No such file or directory.", String(bus.address.suffix(10))] {
            try terminal.write("b")
            _ = try terminal.read(until: text)
        }
        // The first bus again.
        let center = bus.makeCenter()
        try center.postOnceConnected("com.example.a")
        _ = try terminal.read(until: "com.example.a")
        top.send(signal: SIGTERM)
        _ = try top.wait()
    }

    @Test(arguments: anyBusKind(), [true, false])
    func `a bus that does not answer keeps neither q nor a signal from ending it`(kind: BusKind, isKey: Bool) throws {
        let bus = try PrivateBus(kind)
        let silent = try BusRelay(to: bus.address, .fallsSilent)
        defer { silent.close() }
        let terminal = try PseudoTerminal()
        let top = try start(
            bus,
            on: terminal,
            environment: ["TERM": "xterm", "DBUS_SESSION_BUS_ADDRESS": silent.address]
        )
        _ = try terminal.read(until: "Observers unknown")
        try terminal.write("b")
        #expect(silent.bytesToClients.wait(for: 1))
        if isKey { try terminal.write("q") } else { top.send(signal: SIGTERM) }
        // It gives the bus up after 10 s.
        #expect(try top.wait(timeout: .seconds(7)).status == (isKey ? 0 : 143))
    }

    @Test(arguments: anyBusKind())
    func `it sleeps while nothing happens`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let terminal = try PseudoTerminal()
        let top = try start(bus, on: terminal)
        _ = try terminal.read(until: "Observers unknown")
        // Its questions from the start are over when nothing has changed for a while.
        var switches = voluntarySwitches(of: top.pid)
        let rests = waitUntil(timeout: .patience) {
            _ = poll(nil, 0, 2_000)
            defer { switches = voluntarySwitches(of: top.pid) }
            return switches == voluntarySwitches(of: top.pid)
        }
        #expect(rests)
        top.send(signal: SIGTERM)
        _ = try top.wait()
    }

    /// How often the threads of a process have gone to sleep.
    private func voluntarySwitches(of process: pid_t) -> Int {
        let result = try? run("sh", ["-c", "grep -h ^voluntary /proc/\(process)/task/*/status"])
        return result?.lines.compactMap { Int($0.split(whereSeparator: \.isWhitespace).last ?? "") }.reduce(0, +) ?? -1
    }

    @Test(arguments: anyBusKind())
    func `with an agent it fits 80 columns, with ids of 60 characters`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let application = "org.example." + String(repeating: "x", count: 41) + ".Viewer"
        let observer = FakeObserver(pid: 4_000_000, application: application, more: [("decider", .string("person"))])
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list([observer]))
        let terminal = try PseudoTerminal()
        let top = try start(bus, on: terminal, environment: ["TERM": "xterm", "NO_COLOR": "1"])
        var screen = try terminal.read(until: ".Viewer ")
        try bus.makeCenter().postOnceConnected(NotifyName(String(repeating: "n", count: 200)))
        screen += try terminal.read(until: "1 post of 1 name") + terminal.read(until: ".Viewer ")
        let lines = screen.replacing(#/\u{1b}\[[?0-9]*[a-zA-Z]/#, with: "\r\n").split(separator: "\r\n")
        #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
        #expect(lines.contains { $0.contains("...nnn") })
        #expect(!screen.contains("\u{1b}[1m") && !screen.contains("\u{1b}[32m"))
        top.send(signal: SIGTERM)
        _ = try top.wait()
        #expect(agent.calls.elements.allSatisfy { $0.member == "List" })
    }

    @Test(arguments: anyBusKind())
    func `--once prints what there is, --json an object a line`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list([FakeObserver()]))
        let script = """
            notify-top --once -v -t 3s "$@" 2>"$TMP/log" & top=$!
            until grep -q listening "$TMP/log" 2>/dev/null; do :; done
            notify-post com.example.a com.example.a com.example.b
            wait $top
            """
        let folder = try TemporaryFolder()
        func look(_ options: [String], enough: Int) throws -> CommandResult {
            try inTime {
                try run("rm", ["-f", "\(folder.path)/log"])
                return try bus.script("TMP='\(folder.path)'\n" + script, options)
            } unless: {
                $0.lines.count < enough || !$0.output.contains("com.example.b")
            }
        }
        let plain = try look(["--sort", "count"], enough: 3)
        #expect(plain.status == 0)
        #expect(plain.lines.first?.hasPrefix("RATE  COUNT  LAST") == true)
        #expect(
            plain.lines.dropFirst().prefix(2).map { $0.split(separator: " ").last } == [
                "com.example.a", "com.example.b",
            ]
        )
        #expect(plain.output.contains("org.example.Editor"))
        let json = try look(["--json", "--sort", "name"], enough: 3).lines
        #expect(json.count == 3)
        #expect(json[0].hasPrefix(#"{"kind":"name","name":"com.example.a","count":2,"rate":"#))
        #expect(json[2].hasPrefix(#"{"kind":"observer","name":":1.5","pid":100,"#))
        #expect(agent.calls.count >= 2)
    }

    @Test(arguments: anyBusKind())
    func `it says which program and process has posted a name last`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        // One that was connected before, and one that comes afterwards.
        try center.postOnceConnected("com.example.early")
        let objects = try inTime {
            let top = try TestSupport.start(
                productPath("notify-top"),
                ["--address", bus.address, "--once", "--json", "-v", "-t", "3s", "--sort", "name"]
            )
            try top.waitForErrorOutput(containing: "listening")
            try center.postOnceConnected("com.example.early")
            try center.postOnceConnected("com.example.late")
            let other = try TestSupport.start(productPath("notify-post"), ["--address", bus.address, "-"])
            try other.writeInput("com.example.other\n")
            let objects = try top.wait().lines
            other.closeInput()
            #expect(try other.wait().status == 0)
            return objects
        } unless: {
            $0.count < 3 || $0.last?.contains(#""program""#) != true
        }
        let program = try readFile("/proc/self/comm").dropLast()
        #expect(objects.count == 3, "\(objects)")
        #expect(objects.first?.contains(#""pid":\#(getpid()),"program":"\#(program)""#) == true, "\(objects)")
        #expect(objects.last?.contains(#""program":"notify-post""#) == true, "\(objects)")
    }

    @Test func `without a terminal it is 1 and a sentence, and --json needs --once`() throws {
        let bus = try PrivateBus(busKinds[0])
        let result = try bus.run("notify-top", [])
        #expect(result.status == 1)
        #expect(result.errorOutput.contains("use 'notify-top --once'"))
        #expect(try bus.run("notify-top", ["--json"]).status == 64)
        #expect(try run(productPath("notify-top"), ["--address", nowhere, "--once"]).status == 69)
    }
}

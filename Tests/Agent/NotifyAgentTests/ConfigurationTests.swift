// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyAgent
import NotifyCoordinator
import NotifyNames
import TestSupport
import Testing

@testable import notify_agent

/// The agent's configuration file: where the agent looks for it, and what may be in it.
@Suite struct ConfigurationTests {
    /// What the agent says about a file; nothing if all is well.
    private func verdict(on configuration: String) throws -> String {
        // There is no bus: the agent gets as far as noticing that, whatever is in the file.
        let result = try run(
            productPath("notify-agent"),
            ["--address", "unix:path=/nonexistent/bus", "--config", "/dev/stdin"],
            environment: withoutDesktop,
            input: configuration
        )
        #expect(result.status == 69, "\(result.errorOutput)")
        let lines = result.errorOutput.split(separator: "\n")
        #expect(lines.last?.contains("cannot be reached") == true)
        return lines.dropLast().joined(separator: "\n")
    }

    @Test func `each setting is understood, and for an unknown one the known ones are listed`() throws {
        let good = """
            # All there is.
            exempt = app:org.example.A
            focus = app:org.example.B
            focus=app:org.example.C
            focus = background
            focus = ignore
            focus = asked
            session = app:org.example.B
            session = background
            session = ignore
            session = asked
            sleep = app:org.example.B
            sleep = background
            sleep = ignore
            sleep = asked
            ignore = logind
            ignore = gnome
            ignore = x11
            ignore = sway
            ignore = niri
            ignore = hyprland
            ignore = lomiri
            ignore = shell
            ignore = freezer
            ignore = timezone
            events = asked
            events = none
            relay = asked
            relay = none
            relay = app:org.example.A com.example.*
            relay = app:org.example.A *
            file = com.example.hosts /etc/hosts
            file = com.example.notes ~/notes and more.txt
            set = com.example.level
            set = com.example.level 7
            """
        #expect(try verdict(on: good) == "")
        // As an editor on Windows would write it.
        #expect(try verdict(on: good.split(separator: "\n").joined(separator: "\r\n") + "\r\n") == "")
        #expect(try verdict(on: "focus = asked\r\n\r\nfocus = some\r\n").contains(":3: "))
        let bad: [(String, String)] = [
            ("focus = some", "use app:ID, as in app:org.gnome.Maps, asked, background or ignore"),
            ("session = on", "use app:ID, as in app:org.gnome.Maps, asked, background or ignore"),
            ("sleep = app:", "use app:ID, as in app:org.gnome.Maps, asked, background or ignore"),
            (
                "ignore = windows",
                "the sources are logind, gnome, x11, sway, niri, hyprland, lomiri, shell, freezer, timezone"
            ),
            ("follow = all", "the settings are exempt, focus, session, sleep, ignore, events, relay, file and set"),
            ("relay = some", "use asked, none, or app:ID and names such as com.example.*"),
            ("relay = app:org.example.A com.example.", "use asked, none, or app:ID and names such as com.example.*"),
            ("exempt", "missing '='"),
        ]
        for (line, sentence) in bad {
            let text = try verdict(on: "\n" + line + "\n")
            #expect(text.contains("/dev/stdin:2: ") && text.contains(sentence), "\(text)")
        }
    }

    @Test func `what limits an application holds whatever other lines say, and also if its pattern is wrong`() {
        let limit = ("relay", "app:org.example.A com.example.*")
        for lines in [[limit, ("relay", "asked")], [("relay", "none"), limit, ("relay", "asked")]] {
            var configuration = Agent.Configuration()
            for line in lines { #expect(configuration.set(line.0, to: line.1) == nil) }
            #expect(configuration.relay.isOpen)
            #expect(configuration.relay.limits == ["org.example.A": [NamePrefix("com.example.")]])
        }
        var configuration = Agent.Configuration()
        #expect(configuration.set("relay", to: "none") == nil && configuration.set(limit.0, to: limit.1) == nil)
        #expect(!configuration.relay.isOpen)
        for wrong in ["app:org.example.B com.example", "app:org.example.B"] {
            #expect(configuration.set("relay", to: wrong) != nil)
        }
        #expect(configuration.relay.limits["org.example.B"] == [])
    }

    @Test(arguments: anyBusKind())
    func `a line that is wrong is logged and shown, and the others count`(kind: BusKind) throws {
        let folder = try TemporaryFolder()
        let lines = [
            "set = com.example.before 3", "focus = \u{1b}[31mnonsense" + String(repeating: "x", count: 1_000),
            "no sense",
            "set = com.example.after 4",
        ]
        try folder.write(lines.joined(separator: "\n") + "\n", to: "agent.conf")
        let path = folder.path + "/agent.conf"
        let agent = try AgentBus(kind, arguments: ["--config", path])
        let log = try agent.agent.waitForErrorOutput(containing: "ready")
        #expect(log.contains("\(path):2: '\\x1b[31mnonsense"))
        #expect(log.contains("\(path):3: missing '=' in 'no sense'"))
        #expect(log.split(separator: "\n").allSatisfy { $0.utf8.count < 300 })
        let bus = ["--address", agent.bus.address]
        let status = try run(productPath("notify-lifecycle"), bus + ["status"]).output
        #expect(status.contains("faults:"))
        #expect(status.contains("\(path):2: ") && status.contains("\(path):3: missing '='"))
        let states = try run(productPath("notify-state"), bus + ["com.example.before", "com.example.after"])
        #expect(states.output == "com.example.before\t3\ncom.example.after\t4\n")
        let check = try run(productPath("notify-agent"), ["--check", "--config", path])
        #expect(check.status == 1)
        #expect(check.output.contains("\(path):2: ") && check.output.contains("\(path):3: "))
    }

    @Test func `a FIFO as a configuration file is an error, and the agent does not wait for it`() throws {
        let folder = try TemporaryFolder()
        for name in ["agent.conf", "nap.conf"] { #expect(mkfifo("\(folder.path)/\(name)", 0o600) == 0) }
        let check = try run(productPath("notify-agent"), ["--check", "--config", "\(folder.path)/agent.conf"])
        #expect(check.status == 1)
        #expect((check.output + check.errorOutput).contains("agent.conf is not a regular file"))
    }

    @Test func `of many lines that are wrong the first are shown, and the good ones after them count`() throws {
        let bad = (0..<1_000).map { "bad \($0)" }
        let said = try verdict(on: (bad + ["set = com.example.a 1", "wrong"]).joined(separator: "\n") + "\n")
        #expect(said.split(separator: "\n").count == 65)
        #expect(said.hasSuffix("/dev/stdin: more lines are wrong"))
    }

    @Test func `a default file that can't be read is logged, one that was asked for ends the agent`() throws {
        let folder = try TemporaryFolder()
        // Not even root can read a folder like a file.
        try #require(try run("mkdir", ["-p", "\(folder.path)/notifybus/agent.conf"]).status == 0)
        let result = try run(
            productPath("notify-agent"),
            ["--address", "unix:path=/nonexistent/bus"],
            environment: ["XDG_CONFIG_HOME": folder.path]
        )
        #expect(result.status == 69)
        #expect(result.errorOutput.contains("\(folder.path)/notifybus/agent.conf can't be read: "))
        let asked = try run(
            productPath("notify-agent"),
            ["--address", "unix:path=/nonexistent/bus", "--config", "\(folder.path)/notifybus/agent.conf"]
        )
        #expect(asked.status == 1)
    }

    // MARK: - nap.conf

    /// What `--check` says about a file, line by line.
    private func check(naps: String) throws -> (status: Int32, lines: [String]) {
        let folder = try TemporaryFolder()
        try #require(try run("mkdir", ["-p", "\(folder.path)/notifybus"]).status == 0)
        try folder.write(naps, to: "notifybus/nap.conf")
        let result = try run(
            productPath("notify-agent"),
            ["--check", "--config", "/dev/null"],
            environment: ["XDG_CONFIG_HOME": folder.path, "XDG_CONFIG_DIRS": folder.path, "XDG_DATA_DIRS": folder.path]
        )
        return (result.status, result.output.split(separator: "\n").map { String($0) })
    }

    @Test func `each setting of nap.conf is understood`() throws {
        let good = """
            # Which programs nap.
            [nap]                     # a rule
            apps  = org.gnome.Evolution.desktop, steam_app_*    # IDs and patterns
            apps = org.example.More
            after = 10s
            state = background
            keep  = audio, inhibitor, fullscreen
            when  = always

            [nap]
            apps=*
            after=1m30s
            state=frozen
            keep=none
            when=battery
            state = suspended
            """
        for text in [good, good.split(separator: "\n").joined(separator: "\r\n") + "\r\n", ""] {
            let found = try check(naps: text)
            #expect(found.status == 0 && found.lines.isEmpty, "\(found.lines)")
        }
    }

    @Test func `a line of nap.conf that is wrong is named, and costs only itself`() throws {
        let bad: [(line: String, sentence: String)] = [
            ("apps = ,", "no application; use IDs such as org.gnome.Evolution, or *"),
            ("apps = a\u{1}b", "is not the ID of an application"),
            ("after = soon", "'soon' is not a duration up to a day"), ("after = 2d", "is not a duration up to a day"),
            ("state = foreground", "use background, suspended or frozen"),
            ("keep = audio, job", "'job' keeps no program awake; use audio, inhibitor, fullscreen or none"),
            ("when = night", "use always or battery"),
            ("until = noon", "the settings are apps, after, state, keep and when"),
            ("apps", "missing '=' in 'apps'"), ("[naps]", "'[naps]' is not a section; use [nap]"),
        ]
        let text = "apps = early\n[nap]\napps = *\n" + bad.map { $0.line + "\n" }.joined()
        let found = try check(naps: text)
        #expect(found.status == 1 && found.lines.count == bad.count + 1, "\(found.lines)")
        #expect(found.lines.first?.hasSuffix("nap.conf:1: a setting before the first [nap]") == true)
        for (index, entry) in bad.enumerated() where index + 1 < found.lines.count {
            let line = found.lines[index + 1]
            #expect(line.contains("/notifybus/nap.conf:\(index + 4): ") && line.contains(entry.sentence), "\(line)")
        }
    }

    @Test func `without --config the user's file is read, or else the machine's; neither need exist`() throws {
        let folder = "/tmp/notifybus-config-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        defer { _ = try? run("rm", ["-rf", folder]) }
        func write(_ place: String, _ line: String) throws {
            try run("/bin/sh", ["-c", "mkdir -p \"$0\" && echo \"$1\" >\"$0/agent.conf\"", "\(folder)/\(place)", line])
        }
        func verdict() throws -> String {
            try run(
                productPath("notify-agent"),
                ["--address", "unix:path=/nonexistent/bus"],
                environment: [
                    "XDG_CONFIG_HOME": "\(folder)/own", "XDG_CONFIG_DIRS": "relative:\(folder)/first:\(folder)/second",
                ]
            ).errorOutput
        }
        #expect(try verdict().contains("cannot be reached"))
        try write("second/notifybus", "second")
        #expect(try verdict().contains("\(folder)/second/notifybus/agent.conf:1: missing '=' in 'second'"))
        try write("first/notifybus", "first")
        #expect(try verdict().contains("first/notifybus/agent.conf:1: "))
        try write("own/notifybus", "own")
        #expect(try verdict().contains("own/notifybus/agent.conf:1: "))
        try write("own/notifybus", "exempt = app:a")
        #expect(try verdict().contains("cannot be reached"))
    }
}

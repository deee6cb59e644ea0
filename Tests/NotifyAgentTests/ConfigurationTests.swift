// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// The agent's configuration file: where the agent looks for it, and what may be in it.
@Suite struct ConfigurationTests {
    /// What the agent reports about a file when it exits, or "serves".
    private func verdict(on configuration: String) throws -> String {
        // There is no bus: with a valid file the agent gets as far as noticing that.
        let result = try run(
            productPath("notify-agent"),
            ["--address", "unix:path=/nonexistent/bus", "--config", "/dev/stdin"],
            environment: withoutDesktop,
            input: configuration
        )
        return result.status == 69 ? "serves" : result.errorOutput
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
            ignore = shell
            ignore = freezer
            ignore = timezone
            events = asked
            events = none
            relay = asked
            relay = none
            relay = app:org.example.A com.example.
            file = com.example.hosts /etc/hosts
            file = com.example.notes ~/notes and more.txt
            set = com.example.level
            set = com.example.level 7
            """
        #expect(try verdict(on: good) == "serves")
        // As an editor on Windows would write it.
        #expect(try verdict(on: good.split(separator: "\n").joined(separator: "\r\n") + "\r\n") == "serves")
        #expect(try verdict(on: "focus = asked\r\n\r\nfocus = some\r\n").contains(":3: "))
        let bad: [(String, String)] = [
            ("focus = some", "use app:ID, as in app:org.gnome.Maps, asked, background or ignore"),
            ("session = on", "use app:ID, as in app:org.gnome.Maps, asked, background or ignore"),
            ("sleep = app:", "use app:ID, as in app:org.gnome.Maps, asked, background or ignore"),
            ("ignore = windows", "the sources are logind, gnome, x11, sway, shell, freezer, timezone"),
            ("follow = all", "the settings are exempt, focus, session, sleep, ignore, events, relay, file and set"),
            ("relay = some", "use asked, none, or app:ID and a prefix"),
            ("exempt", "missing '='"),
        ]
        for (line, sentence) in bad {
            let text = try verdict(on: "\n" + line + "\n")
            #expect(text.contains("/dev/stdin:2: ") && text.contains(sentence), "\(text)")
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

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// The command after `--`.
@Suite struct OnNotificationTests {
    @Test(arguments: anyBusKind())
    func `the command gets the name and the count, and names are printed only on request`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let names = ["com.example.a", "one = two\n'\"$x", "com.example.a"]
        for option in [[], ["-v"], ["--format", "%n"], ["-q"]] {
            let command = ["sh", "-c", #"printf '<%s %s>\n' "$NOTIFY_COUNT" "$NOTIFY_NAME""#]
            let waiting = try bus.startWaiting(option + ["-n3", "com.example.a", names[1], "--"] + command)
            let center = bus.makeCenter()
            for (index, name) in names.enumerated() {
                try center.postOnceConnected(NotifyName(name))
                try waiting.waitForOutput(containing: "<\(index + 1) \(name)>\n")
            }
            let result = try waiting.wait()
            #expect(result.status == 0)
            let prints = option.first == "-v" || option.first == "--format"
            let expected = names.enumerated().map { (prints ? $1 + "\n" : "") + "<\($0 + 1) \($1)>\n" }
            #expect(result.output == expected.joined())
        }
    }

    @Test(arguments: anyBusKind())
    func `the command gets its arguments unchanged, even those that look like options`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let arguments = ["-n", "--", "", "a b", "$HOME", "--help"]
        let waiting = try bus.startWaiting(["com.example.x", "--", "printf", "<%s>"] + arguments)
        try bus.makeCenter().postOnceConnected("com.example.x")
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.output == arguments.map { "<\($0)>" }.joined())
    }

    @Test(arguments: anyBusKind())
    func `the command has a clean signal mask, ignores no signal, and inherits no descriptor`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/$$/fd; true"
        let waiting = try bus.startWaiting(["-v", "-t", "1h", "com.example.x", "--", "sh", "-c", script])
        try bus.makeCenter().postOnceConnected("com.example.x")
        let lines = try waiting.wait().lines
        try #require(lines.count == 6)
        #expect(lines[0] == "com.example.x")
        #expect(lines[1...2].map(signals(inStatusLine:)) == [[], []])
        #expect(lines[3...] == ["0", "1", "2"])
    }

    @Test(arguments: anyBusKind())
    func `the command inherits the environment except for NOTIFY_SOCKET, so it can't report readiness`(kind: BusKind)
        throws
    {
        let bus = try PrivateBus(kind)
        let environment = ["NOTIFY_SOCKET": "/nonexistent", "KEPT": "yes", "NOTIFY_NAME": "old", "NOTIFY_COUNT": "9"]
        let waiting = try bus.startWaiting(["-q", "com.example.x", "--", "env"], environment: environment)
        try bus.makeCenter().postOnceConnected("com.example.x")
        let variables = try waiting.wait().lines.filter { $0.hasPrefix("NOTIFY_") || $0.hasPrefix("KEPT") }
        #expect(variables.sorted() == ["KEPT=yes", "NOTIFY_COUNT=1", "NOTIFY_NAME=com.example.x"])
    }

    @Test(arguments: anyBusKind())
    func `a command that fails is a sentence, and the status of the last one that did, after all have run`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let script =
            #"echo "$NOTIFY_COUNT"; [ "$NOTIFY_COUNT" != 1 ] || exit 7; [ "$NOTIFY_COUNT" != 2 ] || kill -9 $$"#
        let waiting = try bus.startWaiting(["-n3", "--on-busy", "each", "com.example.x", "--", "sh", "-c", script])
        let center = bus.makeCenter()
        for _ in 1...3 { try center.postOnceConnected("com.example.x") }
        let result = try waiting.wait()
        #expect(result.status == 128 + SIGKILL && result.exitedNormally)
        #expect(result.lines == ["1", "2", "3"])
        #expect(
            result.errorOutput == """
                notify-wait: the command for 'com.example.x' exited with status 7
                notify-wait: the command for 'com.example.x' was killed by signal 9 (Killed)

                """
        )
    }

    @Test(arguments: anyBusKind(), [0, 1, 42, 255] as [Int32])
    func `the status of the command is that of the wait`(kind: BusKind, status: Int32) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["com.example.x", "--", "sh", "-c", "exit \(status)"])
        try bus.makeCenter().postOnceConnected("com.example.x")
        #expect(try waiting.wait().status == status)
    }

    @Test(arguments: anyBusKind())
    func `a command that can't be run is a sentence, and the status that a shell has for it`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let cases: [(String, String, Int32)] = [
            ("no-such-command", "No such file", 127), ("/dev/null", "Permission denied", 126),
        ]
        for (command, reason, status) in cases {
            let waiting = try bus.startWaiting(["com.example.x", "--", command])
            try bus.makeCenter().postOnceConnected("com.example.x")
            let result = try waiting.wait()
            #expect(result.status == status)
            #expect(result.errorOutput.hasPrefix("notify-wait: can't run '\(command)': \(reason)"))
        }
    }

    @Test(arguments: anyBusKind())
    func `a timeout waits for the command that runs, and is 2`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = "echo begun; read line; echo \"ended $line\""
        let center = bus.makeCenter()
        try center.synchronize(timeout: .patience)
        let arguments = ["-f", "-t", "2s", "com.example.x", "--", "sh", "-c", script]
        let waiting = try inTime {
            let waiting = try bus.startWaiting(arguments, input: .pipe)
            try center.postOnceConnected("com.example.x")
            return waiting
        } unless: {
            (try? $0.waitForOutput(containing: "begun\n")) == nil
        }
        try waiting.waitForErrorOutput(containing: "timed out after 1 notification\n")
        try waiting.writeInput("well\n")
        let result = try waiting.wait()
        #expect(result.output == "begun\nended well\n")
        #expect(result.status == 2)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What happens to a notification while the command for the previous one is still running.
///
/// The commands run until they have read a line from their shared standard input.
@Suite struct OnBusyTests {
    private static let script = #"echo "begin $NOTIFY_NAME $$"; read line || exit 9; echo "end $NOTIFY_NAME""#

    /// Starts `notify-wait -v`, which prints each notification's name in addition to the commands' output.
    private func start(on bus: PrivateBus, _ options: [String], _ script: String = script) throws -> RunningCommand {
        try bus.startWaiting(options + ["-v", "a", "b", "c", "--", "sh", "-c", script], input: .pipe)
    }

    /// The lines without the process ids.
    private func withoutIDs(_ lines: [String]) -> [String] {
        lines.map { $0.hasPrefix("begin ") ? String($0.prefix(7)) : $0 }
    }

    /// The process that the command for a name said it is.
    private func process(_ name: String, of command: RunningCommand) throws -> ProcessIdentity {
        let beginning = "begin \(name) "
        try command.waitForOutput(containing: beginning)
        let lines = try command.waitForOutput(containing: "\n").split(separator: "\n")
        let line = try #require(lines.last { $0.hasPrefix(beginning) })
        return ProcessIdentity(try #require(pid_t(line.dropFirst(beginning.count))))
    }

    @Test(arguments: anyBusKind(), [[], ["--on-busy", "queue"], ["--on-busy=queue"]])
    func `queue runs the command once more for each name that arrived meanwhile`(kind: BusKind, policy: [String]) throws
    {
        let bus = try PrivateBus(kind)
        let waiting = try start(on: bus, policy + ["-n7"])
        let center = bus.makeCenter()
        for name in ["a", "b", "a", "c", "a", "b", "b"] { try center.postOnceConnected(NotifyName(name)) }
        // All have been heard, and one command is running.
        let heard = try waiting.waitForOutputLines(8)
        #expect(withoutIDs(heard).sorted() == ["a", "a", "a", "b", "b", "b", "begin a", "c"])
        try waiting.writeInput("1\n2\n3\n4\n5\n")
        let result = try waiting.wait()
        #expect(result.status == 0)
        let runs = withoutIDs(result.lines).filter { $0.count > 1 }
        #expect(runs == ["begin a", "end a", "begin b", "end b", "begin a", "end a", "begin c", "end c"])
    }

    @Test(arguments: anyBusKind())
    func `each runs the command for every notification, one after another`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try start(on: bus, ["-n5", "--on-busy", "each"])
        let center = bus.makeCenter()
        for name in ["a", "b", "a", "a", "c"] { try center.postOnceConnected(NotifyName(name)) }
        try waiting.waitForOutputLines(6)
        try waiting.writeInput("1\n2\n3\n4\n5\n")
        let result = try waiting.wait()
        #expect(result.status == 0)
        let runs = withoutIDs(result.lines).filter { $0.hasPrefix("begin") }
        #expect(runs == ["begin a", "begin b", "begin a", "begin a", "begin c"])
    }

    @Test(arguments: anyBusKind())
    func `20,000 posts while the command runs cause one more run for each name`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(
            ["-f", "-v", "first", "a", "b", "last", "--", "sh", "-c", #"echo "begin $NOTIFY_NAME"; read line"#],
            input: .pipe
        )
        let center = bus.makeCenter()
        try center.postOnceConnected("first")
        try waiting.waitForOutput(containing: "begin first\n")
        let posts = try bus.script(#"(yes $'a\nb' | head -20000; echo last) | notify-post -"#)
        #expect(posts.status == 0)
        try waiting.waitForOutput(containing: "\nlast\n")
        try waiting.writeInput("1\n2\n3\n4\n")
        try waiting.waitForOutput(containing: "begin last\n")
        waiting.send(signal: SIGTERM)
        let runs = try waiting.wait().lines.filter { $0.hasPrefix("begin ") }
        #expect(runs == ["begin first", "begin a", "begin b", "begin last"])
    }

    @Test(arguments: anyBusKind(), [[], ["--on-busy", "each"], ["--on-busy", "restart"], ["--settle", "1ms"]])
    func `a run that began after the last change always follows it`(kind: BusKind, policy: [String]) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let file = "\(folder.path)/state"
        let waiting = try bus.startWaiting(
            policy + ["-f", "a", "--", "sh", "-c", "read value <\(shellWord(file)); echo =$value="]
        )
        let center = bus.makeCenter()
        var random = SeededGenerator(seed: 11)
        // Apart from the default, the policies hardly differ in what matters here.
        let rounds = (policy.isEmpty ? 1_000 : 100) / (isLongRun ? 1 : 10)
        for round in 1...rounds {
            for step in 0..<Int.random(in: 1...3, using: &random) {
                try write("\(round).\(step)", toFile: file)
                try center.postOnceConnected("a")
                // While a run begins, continues, or ends.
                usleep(useconds_t.random(in: 0...10_000, using: &random))
            }
            try write("\(round)", toFile: file)
            try center.postOnceConnected("a")
            try waiting.waitForOutput(containing: "=\(round)=\n", timeout: .patience)
        }
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().errorOutput == "")
    }

    /// Replaces a file atomically.
    private func write(_ text: String, toFile path: String) throws {
        let descriptor = open(path + ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        let line = text + "\n"
        guard descriptor >= 0, Glibc.write(descriptor, line, line.utf8.count) == line.utf8.count,
            close(descriptor) == 0, rename(path + ".new", path) == 0
        else { throw TestSupportError("Cannot write \(path): error \(errno)") }
    }

    @Test(arguments: anyBusKind())
    func `drop runs nothing for what arrives meanwhile`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try start(on: bus, ["-n4", "--on-busy", "drop"])
        let center = bus.makeCenter()
        for name in ["a", "b", "c"] { try center.postOnceConnected(NotifyName(name)) }
        try waiting.waitForErrorOutput(containing: "the command is still running; skipping 'b'\n")
        try waiting.waitForErrorOutput(containing: "the command is still running; skipping 'c'\n")
        try waiting.writeInput("1\n")
        try #require(waitUntil { children(of: waiting.pid, named: "notify-wait").isEmpty })
        try center.postOnceConnected("b")
        _ = try process("b", of: waiting)
        try waiting.writeInput("2\n")
        let result = try waiting.wait()
        #expect(result.status == 0)
        let runs = withoutIDs(result.lines).filter { $0.count > 1 }
        #expect(runs == ["begin a", "end a", "begin b", "end b"])
    }

    @Test(arguments: anyBusKind())
    func `restart ends the running command and everything that it started, and starts it again`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        // The pipe creates a second process, which would survive a signal to the shell alone.
        let script = "sh -c '\(Self.script)' | cat"
        let waiting = try start(on: bus, ["-n3", "--on-busy", "restart"], script)
        let center = bus.makeCenter()
        try center.postOnceConnected("a")
        let first = try process("a", of: waiting)
        try center.postOnceConnected("b")
        let second = try process("b", of: waiting)
        #expect(waitUntil { first.hasEnded })
        try center.postOnceConnected("c")
        let third = try process("c", of: waiting)
        #expect(waitUntil { second.hasEnded })
        #expect(!third.hasEnded)
        try waiting.writeInput("line\n")
        let result = try waiting.wait()
        #expect(result.status == 0, "to be restarted is no failure")
        #expect(result.output.hasSuffix("end c\n"))
        #expect(!result.output.contains("end a") && !result.output.contains("end b"))
    }

    @Test(arguments: anyBusKind())
    func `restart starts once for the last of many notifications`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let result = try inTime {
            // Only the line ends it, or a signal after a while.
            let waiting = try start(on: bus, ["-n", "4", "--on-busy", "restart"], "trap '' TERM; \(Self.script)")
            try center.postOnceConnected("a")
            _ = try process("a", of: waiting)
            for name in ["b", "a", "c"] { try center.postOnceConnected(NotifyName(name)) }
            // Names are printed as they arrive. Now all have arrived, and the first command is still running.
            try waiting.waitForOutput(containing: "\nc\n")
            try waiting.writeInput("1\n2\n3\n4\n")
            return try waiting.wait()
        } unless: {
            !$0.output.contains("end a\n")
        }
        #expect(result.status == 0)
        let runs = withoutIDs(result.lines).filter { $0.count > 1 }
        #expect(runs == ["begin a", "end a", "begin c", "end c"])
    }

    @Test func `restart kills a command that has not ended after 5 seconds`() throws {
        let bus = try PrivateBus(busKinds[0])
        let script = #"[ $NOTIFY_NAME = b ] && exit; trap '' TERM; \#(Self.script); \#(Self.script)"#
        let waiting = try start(on: bus, ["-n2", "--on-busy", "restart"], script)
        let center = bus.makeCenter()
        try center.postOnceConnected("a")
        let first = try process("a", of: waiting)
        try center.postOnceConnected("b")
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(first.hasEnded)
        #expect(!result.output.contains("end"))
    }

    @Test(arguments: anyBusKind())
    func `a signal also ends the running command, and nothing that was waiting begins`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for (signal, status) in [(SIGTERM, 143), (SIGINT, 130), (SIGHUP, 129)] as [(Int32, Int32)] {
            let waiting = try start(on: bus, ["-n2"])
            let center = bus.makeCenter()
            try center.postOnceConnected("a")
            let child = try process("a", of: waiting)
            try center.postOnceConnected("b")
            try waiting.waitForOutput(containing: "\nb\n")
            waiting.send(signal: signal)
            let result = try waiting.wait()
            #expect(result.status == status)
            #expect(waitUntil { child.hasEnded })
            #expect(!result.output.contains("begin b") && !result.output.contains("end"))
        }
    }
}

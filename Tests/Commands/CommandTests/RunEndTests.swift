// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// A run has ended when nothing is left of it: the command, and all that it has started, wherever that has gone.
@Suite struct RunEndTests {
    /// Ways in which a command may have something else do its work.
    private static let lines = [
        #""$WORK"; true"#, #""$WORK" & wait"#, #""$WORK" | cat; true"#, #"(sh -c '"$WORK"; true'); true"#,
        #"setsid "$WORK"; true"#, #"(setsid "$WORK" &); read never"#, #"trap '' TERM; "$WORK"; true"#,
        #"setsid -f "$WORK""#,
    ]

    /// A command that works for long: it says its number, and complains if another one is at work.
    private static let work = """
        #!/bin/sh
        exec 9>>"$LOCK"
        flock -n 9 || echo two at once
        if [ "$STUBBORN" ]; then trap '' TERM; else trap 'sleep 0.2; exit' TERM; fi
        echo "begin $$"
        while :; do sleep 0.05; done
        """

    private func start(
        _ line: String,
        _ options: [String],
        on bus: PrivateBus,
        in folder: TemporaryFolder,
        isStubborn: Bool = false
    ) throws -> RunningCommand {
        let work = "\(folder.path)/work"
        try write(Self.work, toFile: work)
        chmod(work, 0o755)
        return try bus.startWaiting(
            ["-f", "a"] + options + ["--", "sh", "-c", line],
            environment: ["WORK": work, "LOCK": "\(folder.path)/lock", "STUBBORN": isStubborn ? "yes" : nil],
            input: .pipe
        )
    }

    private func write(_ text: String, toFile path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0, Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count, close(descriptor) == 0
        else { throw TestSupportError("Cannot write \(path): error \(errno)") }
    }

    /// What is at work, once as many have been.
    private func worker(_ count: Int, of waiting: RunningCommand) throws -> ProcessIdentity {
        let lines = try waiting.waitForOutputLines(count)
        #expect(lines.count == count && lines.allSatisfy { $0.hasPrefix("begin ") }, "\(lines)")
        return ProcessIdentity(try #require(lines.last.flatMap { pid_t($0.dropFirst("begin ".count)) }))
    }

    @Test(arguments: anyBusKind(), lines)
    func `restart begins the next run when nothing is left of the last one`(kind: BusKind, line: String) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let waiting = try start(line, ["--on-busy", "restart"], on: bus, in: folder)
        let center = bus.makeCenter()
        var workers: [ProcessIdentity] = []
        for count in 1...4 {
            try center.postOnceConnected("a")
            let worker = try worker(count, of: waiting)
            #expect(!worker.hasEnded)
            #expect(workers.filter { !$0.hasEnded }.isEmpty)
            workers.append(worker)
        }
        waiting.send(signal: SIGTERM)
        let result = try waiting.wait()
        #expect(result.status == 143)
        #expect(!result.output.contains("two at once"))
    }

    @Test(arguments: [#""$WORK"; true"#, #"setsid "$WORK"; true"#, #"setsid -f "$WORK""#])
    func `restart kills after 5 seconds what does not end, wherever it is`(line: String) throws {
        let bus = try PrivateBus(busKinds[0])
        let folder = try TemporaryFolder()
        let waiting = try start(line, ["--on-busy", "restart"], on: bus, in: folder, isStubborn: true)
        let center = bus.makeCenter()
        try center.postOnceConnected("a")
        let first = try worker(1, of: waiting)
        let start = ContinuousClock.now
        try center.postOnceConnected("a")
        let second = try worker(2, of: waiting)
        #expect(ContinuousClock.now - start >= .milliseconds(4_900))
        #expect(first.hasEnded)
        waiting.send(signal: SIGTERM)
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().status == 143)
        #expect(second.hasEnded)
    }

    @Test(arguments: [#""$WORK"; true"#, #"setsid -f "$WORK""#], [false, true])
    func `SIGTERM returns when nothing is left, within 6 seconds`(line: String, isStubborn: Bool) throws {
        let bus = try PrivateBus(busKinds[0])
        let folder = try TemporaryFolder()
        let waiting = try start(line, [], on: bus, in: folder, isStubborn: isStubborn)
        try bus.makeCenter().postOnceConnected("a")
        let worker = try worker(1, of: waiting)
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait(timeout: .seconds(5) + .patience).status == 143)
        #expect(worker.hasEnded)
    }

    @Test(arguments: anyBusKind())
    func `a run whose command has ended lasts as long as what that left behind`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = #"exec 3<&0; (read line <&3; echo "end $line") & exit 3"#
        let waiting = try bus.startWaiting(["-n2", "-v", "a", "--", "sh", "-c", script], input: .pipe)
        let center = bus.makeCenter()
        try center.postOnceConnected("a")
        try center.postOnceConnected("a")
        try waiting.waitForOutput(containing: "a\na\n")
        try #require(waitUntil { runs(of: waiting.pid, named: "sh").count == 1 })
        try waiting.writeInput("1\n")
        try waiting.waitForOutput(containing: "end 1\n")
        try waiting.waitForErrorOutput(containing: "the command for 'a' exited with status 3\n")
        try waiting.writeInput("2\n")
        let result = try waiting.wait()
        #expect(result.status == 3)
        #expect(result.output == "a\na\nend 1\nend 2\n")
    }

    @Test(arguments: anyBusKind())
    func `what --then has left behind is no run`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let then = "exec 3<&0; setsid sh -c 'echo server $$; read line <&3' & exit 0"
        let waiting = try bus.startWaiting(["a", "--then", then, "--", "true"], input: .pipe)
        let line = try waiting.waitForOutput(containing: "\n")
        let server = ProcessIdentity(try #require(pid_t(line.dropFirst("server ".count).dropLast())))
        let waiter = ProcessIdentity(waiting.pid)
        try bus.makeCenter().postOnceConnected("a")
        try #require(waitUntil { waiter.hasEnded })
        #expect(!server.hasEnded)
        waiting.closeInput()
        #expect(try waiting.wait().status == 0)
        #expect(waitUntil { server.hasEnded })
    }

    @Test(arguments: anyBusKind())
    func `a wait that is killed leaves the bus at once, whatever runs`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["-f", "a", "--", "sh", "-c", "echo begin; read line"], input: .pipe)
        try bus.makeCenter().postOnceConnected("a")
        try waiting.waitForOutput(containing: "begin\n")
        let keeper = try #require(children(of: waiting.pid, named: "notify-wait").first)
        #expect(openFiles(of: keeper).count == 1, "only what says how the command has ended")
        let kept = ProcessIdentity(keeper)
        waiting.send(signal: SIGKILL)
        waiting.closeInput()
        #expect(waitUntil { kept.hasEnded })
        _ = try waiting.wait()
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What a signal does: it ends the command as a signal ends any program, once that has cleaned up.
@Suite struct SignalTests {
    @Test(arguments: anyBusKind(), [SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    func `a signal kills notify-wait itself, so that the parent process sees which one`(
        kind: BusKind,
        signal: Int32
    ) throws {
        let bus = try PrivateBus(kind)
        for options in [["a"], ["-f", "a", "--", "true"], ["-t", "1h", "a", "--then", "exec sleep 1000"]] {
            let waiting = try bus.startWaiting(options)
            waiting.send(signal: signal)
            let result = try waiting.wait()
            #expect(!result.exitedNormally)
            #expect(result.status == 128 + signal)
            #expect(result.output == "" && result.errorOutput == "")
        }
    }

    @Test(arguments: anyBusKind())
    func `before it dies of a signal, its commands have ended and its ready file is gone`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let ready = "\(folder.path)/ready"
        // Both say when they end, after notify-wait has got the signal. They don't read for ever, because a signal that comes
        // just before a shell begins to read is noticed only afterwards.
        let script = #"trap "echo $0 ended; exit" TERM; echo $0 began; while :; do read -t 0.1; done"#
        let command = ["bash", "-c", script, "command"]
        let waiting = try bus.startWaiting(
            ["--ready-file", ready, "a", "--then", "exec bash -c '\(script)' then", "--"] + command,
            input: .pipe
        )
        try bus.makeCenter().postOnceConnected("a")
        try waiting.waitForOutput(containing: "command began\n")
        try waiting.waitForOutput(containing: "then began\n")
        #expect((try? readFile(ready)) == "\(waiting.pid)\n")
        waiting.send(signal: SIGTERM)
        let result = try waiting.wait()
        #expect(result.status == 143 && !result.exitedNormally)
        #expect(result.output.contains("command ended\n") && result.output.contains("then ended\n"))
        #expect(result.errorOutput == "", "to be told to end is no failure of the command")
        #expect(try run("ls", ["-A", folder.path]).output == "")
    }

    @Test(arguments: anyBusKind(), [SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    func `a signal ends all that the command of --then has started, not only its shell`(
        kind: BusKind,
        signal: Int32
    ) throws {
        let bus = try PrivateBus(kind)
        // None of these shells passes a signal on, and what they start in the background ignores some signals.
        let script = #"sleep 1000 & echo $!; sh -c 'sleep 1000 & echo $!; echo $$; wait'; true"#
        let waiting = try bus.startWaiting(["-f", "a", "--then", script])
        let started = try waiting.waitForOutputLines(3).compactMap { pid_t($0).map(ProcessIdentity.init) }
        #expect(started.count == 3)
        waiting.send(signal: signal)
        #expect(try waiting.wait().status == 128 + signal)
        #expect(started.filter { !$0.hasEnded }.isEmpty)
    }

    @Test(arguments: anyBusKind())
    func `a second signal ends the wait for a command that will not end`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(
            ["a", "--", "sh", "-c", "trap 'echo told' TERM; echo began; while :; do sleep 1; done"]
        )
        try bus.makeCenter().postOnceConnected("a")
        try waiting.waitForOutput(containing: "began\n")
        let child = ProcessIdentity(try #require(runs(of: waiting.pid, named: "sh").first))
        waiting.send(signal: SIGTERM)
        try waiting.waitForOutput(containing: "told\n")
        waiting.send(signal: SIGINT)
        let result = try waiting.wait(timeout: .patience)
        #expect(result.status == 143 && !result.exitedNormally)
        #expect(waitUntil { child.hasEnded })
    }

    @Test(arguments: anyBusKind())
    func `a bus that does not answer keeps no signal from ending it once --then has failed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["a", "--then", "read line; exit 3"], input: .pipe)
        try #require(waitUntil { !children(of: waiting.pid, named: "sh").isEmpty })
        bus.stop()
        defer { bus.resume() }
        waiting.closeInput()
        try #require(waitUntil { children(of: waiting.pid, named: "sh").isEmpty })
        waiting.send(signal: SIGTERM)
        // The bus is given up after 5 s.
        #expect(try waiting.wait(timeout: .seconds(3)).status == 143)
    }

    @Test(arguments: anyBusKind())
    func `a signal that ends the command of --then leaves no ready file behind`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let result = try bus.run(
            "notify-wait",
            ["a", "--ready-file", "\(folder.path)/ready", "--then", "kill -TERM $$"]
        )
        #expect(result.status == 143 && !result.exitedNormally)
        #expect(try run("ls", ["-A", folder.path]).output == "")
    }

    @Test func `a ready file that another process has put in place meanwhile stays`() throws {
        let bus = try PrivateBus(busKinds[0])
        let folder = try TemporaryFolder()
        let ready = "\(folder.path)/ready"
        let waiting = try bus.startWaiting(["--ready-file", ready, "a"])
        try #require(waitUntil { (try? readFile(ready)) != nil })
        try run("sh", ["-c", "echo other >\"$0.new\" && mv \"$0.new\" \"$0\"", ready])
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().status == 143)
        #expect((try? readFile(ready)) == "other\n")
    }

    @Test(.enabled(if: isInstalled("script"), "script(1) is not installed"), arguments: anyBusKind())
    func `^C on a terminal ends a loop of the shell around notify-wait`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        // The shell goes on with its loop unless the command was killed by SIGINT.
        let loop = "while :; do notify-wait -v com.example.never; echo again; done; echo after"
        let shell = try TestSupport.start(
            "script",
            ["-qec", "bash -c '\(loop)'", "/dev/null"],
            environment: bus.environment()
        )
        try shell.waitForOutput(containing: "the observer is live")
        try shell.writeInput("\u{3}")
        let result = try shell.wait()
        #expect(result.status == 130)
        #expect(!result.output.contains("again") && !result.output.contains("after"))
    }

    @Test(.enabled(if: isInstalled("script"), "script(1) is not installed"), arguments: anyBusKind())
    func `^C on a terminal reaches the command of --then once`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let then = #"exec bash -c "trap \"echo told\" INT; echo begun; until read -t 0.1; do :; done""#
        let shell = try TestSupport.start(
            "script",
            ["-qec", "notify-wait com.example.never --then '\(then)'", "/dev/null"],
            environment: bus.environment()
        )
        try shell.waitForOutput(containing: "begun")
        try shell.writeInput("\u{3}")
        try shell.waitForOutput(containing: "told")
        try shell.writeInput("\n")
        let result = try shell.wait()
        #expect(result.status == 130)
        #expect(result.output.split(separator: "told").count == 2)
    }
}

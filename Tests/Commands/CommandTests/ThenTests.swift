// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

@Suite struct ThenTests {
    /// Both kinds run at once; each loop is one process, so that nearly all the time goes into the commands.
    @Test(arguments: busKinds)
    func `a wait whose --then posts the name never misses it, however often it is tried`(kind: BusKind) throws {
        let rounds = isLongRun ? 1_000 : 20
        let bus = try PrivateBus(kind)
        let loop = """
            for ((i = 0; i < \(rounds); i++)); do
                heard=$(notify-wait -t 120s com.example.$i --then "notify-post com.example.$i") || echo "$i: status $?"
                [[ $heard == com.example.$i ]] || echo "$i: heard '$heard'"
            done
            echo finished
            """
        let result = try bus.script(loop, timeout: .seconds(600))
        #expect(result.output == "finished\n")
        #expect(result.errorOutput == "")
    }

    @Test(arguments: anyBusKind())
    func `the command of --then runs once, by the shell, when the observer is live`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let result = try bus.script(
            """
            notify-wait -n3 'com.example.*' --then '
                for name in a b; do notify-post com.example.$name; done
                printf "com.example.c\\n" | notify-post - && echo "posted all" >&2'
            """
        )
        #expect(result.status == 0)
        #expect(result.lines == ["com.example.a", "com.example.b", "com.example.c"])
        // It need not have ended when the last name was heard: the wait is over then.
        #expect(result.errorOutput == "posted all\n" || result.errorOutput == "")
    }

    @Test(arguments: anyBusKind(), [SIGTERM, SIGINT, SIGHUP])
    func `a --then that a signal has told to end ends the wait by that signal`(kind: BusKind, number: Int32) throws {
        let bus = try PrivateBus(kind)
        let result = try bus.run("notify-wait", ["com.example.never", "--then", "kill -\(number) $$"])
        #expect(result.status == 128 + number && !result.exitedNormally)
        #expect(result.errorOutput.contains("the --then command was killed by signal \(number) "))
    }

    @Test(arguments: anyBusKind())
    func `a --then that fails ends the wait with its status and a sentence`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let failures =
            [
                ("exit 3", "exited with status 3", 3), ("kill -9 $$", "was killed by signal 9 (Killed)", 137),
                ("no-such-command 2>/dev/null", "exited with status 127", 127),
                ("notify-post '' 2>/dev/null", "exited with status 64", 64),
            ] as [(String, String, Int32)]
        for (command, ending, status) in failures {
            let result = try bus.script("notify-wait com.example.never --then \"$1\"", [command])
            #expect(result.status == status && result.exitedNormally)
            #expect(result.output == "")
            #expect(result.errorOutput == "notify-wait: the --then command \(ending)\n")
            // -q leaves errors.
            let quiet = try bus.script("notify-wait -q com.example.never --then \"$1\"", [command])
            #expect(quiet.status == status && quiet.errorOutput == result.errorOutput)
        }
    }

    @Test(arguments: anyBusKind())
    func `a --then that fails after it has posted was enough`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for _ in 0..<20 {
            let result = try bus.script("notify-wait com.example.x --then 'notify-post com.example.x; exit 3'")
            #expect(result.status == 0)
            #expect(result.output == "com.example.x\n" && result.errorOutput == "")
        }
        let half = try bus.script("notify-wait -n2 com.example.x --then 'notify-post com.example.x; exit 3'")
        #expect(half.status == 3)
        #expect(half.output == "com.example.x\n")
        #expect(half.errorOutput == "notify-wait: the --then command exited with status 3\n")
    }

    @Test(arguments: anyBusKind())
    func `a --then that ends well leaves the wait as it was`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["com.example.later", "--then", "echo ended >&2"])
        try waiting.waitForErrorOutput(containing: "ended\n")
        try #require(waitUntil { children(of: waiting.pid, named: "sh").isEmpty })
        try bus.makeCenter().postOnceConnected("com.example.later")
        #expect(try waiting.wait().status == 0)
    }

    @Test(arguments: anyBusKind())
    func `the command of --then has the standard input, and a clean signal mask`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = "cat >&2; exec grep -E '^Sig(Blk|Ign)' /proc/self/status >&2"
        let waiting = try bus.startWaiting(["-t", "1h", "com.example.never", "--then", script], input: .pipe)
        try waiting.writeInput("typed\n")
        waiting.closeInput()
        try waiting.waitForErrorOutput(containing: "SigIgn:")
        let errors = try waiting.waitForErrorOutput(containing: "SigBlk:").split(separator: "\n").map(String.init)
        #expect(errors.first == "typed")
        #expect(errors.dropFirst().map(signals(inStatusLine:)) == [[], []])
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().status == 143)
    }

    @Test(arguments: anyBusKind())
    func `SIGTERM and SIGHUP reach the command of --then`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for (signal, name, status) in [(SIGTERM, "TERM", 143), (SIGHUP, "HUP", 129)] as [(Int32, String, Int32)] {
            let loop = "echo begun >&2; while :; do read -t 0.1; done"
            let script = "exec bash -c 'trap \"echo told >&2; exit 0\" \(name); \(loop)'"
            let waiting = try bus.startWaiting(["com.example.never", "--then", script], input: .pipe)
            try waiting.waitForErrorOutput(containing: "begun\n")
            waiting.send(signal: signal)
            try waiting.waitForErrorOutput(containing: "told\n")
            waiting.closeInput()
            #expect(try waiting.wait().status == status)
        }
    }
}

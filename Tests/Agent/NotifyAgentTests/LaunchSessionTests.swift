// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// Starting programs for names, with systemd's user manager, on both daemons.
@Suite(.disabled(if: UserSession.obstacle != nil, "a session of systemd's takes root, systemd and control groups"))
struct LaunchSessionTests {
    /// The command of a program that runs for as long as the test wants.
    private let untilFinish = "until [ -e $HOME/finish ]; do sleep 0.05; done"

    @Test(arguments: anyBusKind())
    func `three posts while the job runs cause one more run`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.job("echo run >>$HOME/runs; \(untilFinish)")
        try session.entry("job", "name = com.example.go", "start = job.service")
        try session.startAgent()
        try session.shell("notify-post com.example.go")
        try session.waitFor("starting", of: "job")
        // The agent has heard it by the time the command returns.
        try session.shell("notify-post com.example.go; notify-post com.example.go com.example.go")
        try session.shell(": >\"$HOME/finish\"")
        try session.until("has runs 2")
        try session.waitFor("idle", of: "job")
        #expect(try session.lines("runs") == 2)
        #expect(try session.field("starts", of: "job") == "2" && session.field("due", of: "job") == "0")
    }

    @Test(arguments: anyBusKind())
    func `a storm causes no more starts than the limit, and then wakes the agent no more`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.entry("job", "name = com.example.go", "run = sh -c 'echo run >>$HOME/runs'", "limit = 3/1h")
        try session.startAgent()
        try session.shell("yes com.example.go | head -n 10000 | notify-post -", timeout: .patience)
        // On a fast machine the storm is over before the third start, which takes another post.
        try session.until("notify-post com.example.go; notify-lifecycle launches -q | grep -q '^job .* limited '")
        try session.until("has runs 3")
        #expect(try session.field("starts", of: "job") == "3" && session.field("due", of: "job") == "1")
        // notify-post would ask the agent whether it has heard them.
        let post = "busctl --user emit /org/notifybus org.notifybus.n.com.example.go Posted s com.example.go"
        #expect(try session.agentSleeps(through: "for i in {1..100}; do \(post); done"))
    }

    /// What is started, and by whom; the program observes the trigger and three more names.
    enum Observer: String, CaseIterable {
        case unit
        /// Started by the bus; the names that they own tell which processes they are.
        case ownsThenObserves, observesThenOwns
    }

    /// The names are posted at random moments while the program starts.
    @Test(arguments: busKinds, Observer.allCases)
    func `a program that observes hears the trigger once, and each name posted meanwhile`(
        kind: BusKind,
        observer: Observer
    ) throws {
        if observer != .unit, !ActivatedProgram.isPossible { return }
        let session = try UserSession(kind)
        let names = ["com.example.go", "com.example.a", "com.example.b", "com.example.c"]
        let entry = names.map { "name = \($0)" } + ["limit = 1000/1s"]
        switch observer {
        case .unit:
            try session.unit(
                "observer.service",
                "[Unit]",
                "StartLimitIntervalSec=0",
                "[Service]",
                "Type=exec",
                "StandardOutput=append:%h/heard",
                "ExecStart=\(try productPath("notify-wait")) --all \(names.joined(separator: " ")) com.example.end"
            )
            try session.entry("observer", entry + ["start = observer.service"])
        case .ownsThenObserves, .observesThenOwns:
            let order = observer == .ownsThenObserves ? "own observe" : "observe own"
            try ActivatedProgram.install(in: session, order, names + ["com.example.end"])
            try session.entry("observer", entry + ["activate = \(ActivatedProgram.name)"])
        }
        try session.startAgent()
        let rounds = isLongRun ? 1_000 : observer == .unit ? 6 : 3
        let output = try session.shell(
            """
            exec 5> >(exec notify-post -)
            # within CONDITION - whether it holds within 2 minutes
            within() {
              local end=$((SECONDS + 120))
              while ((SECONDS < end)); do if eval "$1"; then return; fi; pause 0.005; done
              return 1
            }
            for ((round = 0; round < \(rounds); round++)); do
              : >"$HOME/heard"
              echo com.example.go >&5
              for name in a b c; do
                pause 0.0$((RANDOM % 60 + 10))
                echo com.example.$name >&5
              done
              within 'lines heard && ((lines >= 4))' || { echo "round $round: too few"; cat "$HOME/heard"; notify-lifecycle launches --json; break; }
              # The agent says everything that it has to say before it answers.
              notify-lifecycle list >/dev/null || { echo "round $round: no answer"; cat "$HOME/agent.log"; break; }
              echo com.example.end >&5
              within '[[ $(notify-lifecycle launches -q) == *" idle "* ]]' || { echo "round $round: not idle"; break; }
              # Names that are posted while it registers may be heard twice.
              sort "$HOME/heard" | uniq -c | tr -s ' \\n' ' ' | grep -qxE \
                ' [12] com.example.a [12] com.example.b [12] com.example.c 1 com.example.end 1 com.example.go ' ||
                { echo "round $round:"; cat "$HOME/heard"; break; }
            done
            exec 5>&-
            """,
            timeout: .seconds(1_200)
        )
        #expect(output.isEmpty, "\(output)")
        #expect(try session.field("starts", of: "observer") == "\(rounds)")
    }

    /// The sender of a post is known only after the post has arrived, and by then the program may have registered.
    @Test(arguments: anyBusKind())
    func `a program that observes hears what others post while it registers, whoever they are`(
        kind: BusKind
    ) throws {
        let session = try UserSession(kind)
        let names = ["com.example.go", "com.example.a", "com.example.b", "com.example.c"]
        try session.unit(
            "observer.service",
            "[Unit]",
            "StartLimitIntervalSec=0",
            "[Service]",
            "Type=exec",
            "StandardOutput=append:%h/heard",
            "ExecStart=\(try productPath("notify-wait")) --all \(names.joined(separator: " ")) com.example.end"
        )
        try session.entry("observer", names.map { "name = \($0)" } + ["limit = 1000/1s", "start = observer.service"])
        try session.startAgent()
        for _ in 0..<(isLongRun ? 200 : 3) {
            try session.shell(
                """
                : >"$HOME/heard"
                notify-post com.example.go
                # Each is new to the agent, and stays until it is known.
                exec 6> >(exec notify-post -) 7> >(exec notify-post -) 8> >(exec notify-post -)
                pause 0.0$((RANDOM % 30 + 10))
                echo com.example.a >&6
                pause 0.0$((RANDOM % 30 + 10))
                echo com.example.b >&7
                pause 0.0$((RANDOM % 30 + 10))
                echo com.example.c >&8
                """
            )
            try session.until("[[ $(sort -u \"$HOME/heard\" | wc -l) == 4 ]]")
            try session.shell("exec 6>&- 7>&- 8>&-; notify-post com.example.end")
            try session.waitFor("idle", of: "observer")
        }
    }

    /// A started program counts as failed even if it fails only later.
    @Test(arguments: anyBusKind())
    func `a program that exits with 3 counts as failed, and says so`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.entry("command", "name = com.example.go", "run = sh -c '\(untilFinish); exit 3'")
        try session.unit(
            "unit.service",
            "[Service]",
            "Type=exec",
            "ExecStart=/bin/sh -c '\(untilFinish); kill -KILL $$$$'"
        )
        try session.entry("unit", "name = com.example.go", "start = unit.service")
        try session.startAgent()
        try session.shell("notify-post com.example.go")
        for entry in ["command", "unit"] { try session.waitFor("running", of: entry) }
        try session.shell(": >\"$HOME/finish\"")
        for (entry, result) in [("command", "exited with status 3"), ("unit", "was ended by signal 9")] {
            try session.until("notify-lifecycle launches -q | grep -q '^\(entry) .* idle .*\(result)'")
            #expect(try session.field("starts", of: entry) == "1" && session.field("failures", of: entry) == "1")
        }
        #expect(try session.shell("notify-lifecycle launches -v").contains("as notifybus-launch-command-"))
    }

    @Test(arguments: anyBusKind(), ["sh $WORK; true", "setsid $WORK; true", "setsid -f $WORK; sleep 100"])
    func `a command that is restarted is gone before the next one begins, whatever it has started`(
        kind: BusKind,
        line: String
    ) throws {
        let session = try UserSession(kind)
        let work = """
            #!/bin/sh
            exec 9>>$HOME/lock
            flock -n 9 || echo two at once >>$HOME/runs
            trap '' TERM
            echo $$ >>$HOME/runs
            while :; do sleep 0.05; done
            """
        try session.shell("cat >\"$HOME/work\" <<'END'\n\(work)\nEND\nchmod +x \"$HOME/work\"")
        let home = try session.shell("echo \"$HOME\"").prefix { $0 != "\n" }
        try session.entry(
            "job",
            "name = com.example.go",
            "on-busy = restart",
            "environment = WORK=\(home)/work",
            "run = sh -c '\(line)'"
        )
        try session.startAgent()
        try session.shell("notify-post com.example.go")
        try session.until("has runs 1")
        let start = ContinuousClock.now
        try session.shell("notify-post com.example.go")
        try session.until("has runs 2")
        let time = ContinuousClock.now - start
        #expect(time >= .milliseconds(4_900), "it does not heed SIGTERM")
        #expect(time < .seconds(6) + .patience)
        #expect(try !session.shell("cat \"$HOME/runs\"").contains("two"))
        let look = "kill -0 $(head -n 1 \"$HOME/runs\") 2>/dev/null && echo there || echo gone"
        #expect(try session.shell(look) == "gone\n")
    }

    /// systemd may learn of the end before it takes the start for done.
    @Test(arguments: anyBusKind())
    func `commands that fail at once exited with status 3 each, and were started`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.entry("command", "name = com.example.go", "run = sh -c 'exit 3'", "limit = 1000/1s")
        try session.startAgent()
        for count in 1...(isLongRun ? 100 : 10) {
            try session.shell("notify-post com.example.go")
            try session.until("notify-lifecycle launches -q | grep -q '^command .* idle .*exited with status 3'")
            #expect(try session.field("starts", of: "command") == "\(count)")
            #expect(try session.field("failures", of: "command") == "\(count)")
        }
        #expect(try session.shell("notify-lifecycle launches -q").contains("exited with status 3"))
    }

    @Test(arguments: anyBusKind())
    func `a program that observes before its entry is read is not started again`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.unit(
            "observer.service",
            "[Service]",
            "Type=exec",
            "StandardOutput=append:%h/heard",
            "ExecStart=\(try productPath("notify-wait")) -f com.example.go"
        )
        try session.entry("other", "name = com.example.other", "start = other.service")
        try session.startAgent()
        try session.shell("systemctl --user start observer.service")
        try session.until("notify-lifecycle list -v | grep -q com.example.go")
        try session.entry("observer", "name = com.example.go", "start = observer.service", "on-busy = restart")
        try session.waitFor("running", of: "observer")
        try session.shell("notify-post com.example.go")
        try session.until("has heard 1")
        // An agent that starts it again has begun with that before `notify-post` returns.
        #expect(try session.field("starts", of: "observer") == "0")
        #expect(try session.field("state", of: "observer") == "running")
    }

    @Test(arguments: anyBusKind())
    func `a failed start is reported, uses up its posts, and disturbs no other`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.unit("failing.service", "[Service]", "Type=oneshot", "ExecStart=/bin/false")
        try session.shell("systemctl --user --quiet mask masked.service")
        for name in ["missing", "masked", "failing"] {
            try session.entry(name, "name = com.example.\(name)", "start = \(name).service")
        }
        // One that dies at once, before it can register.
        try session.entry("dying", "name = com.example.dying", "run = false")
        try session.entry("nowhere", "name = com.example.nowhere", "run = /nonexistent/program")
        try session.entry(
            "good",
            "name = com.example.good",
            "run = sh -c 'echo $NOTIFY_NAME $A >$HOME/good'",
            "environment = A=b c"
        )
        try session.startAgent()
        for name in ["missing", "masked", "failing", "dying", "nowhere", "good"] {
            try session.shell("notify-post com.example.\(name)")
        }
        try session.until("grep -q . \"$HOME/good\"")
        try session.until("! notify-lifecycle launches -q | grep -qv ' idle '")
        for name in ["missing", "masked", "failing", "dying", "nowhere", "good"] {
            #expect(try session.field("starts", of: name) == "1", "\(name)")
            #expect(try session.field("due", of: name) == "0", "\(name)")
            // systemd decides whether a program that ends at once was started or has failed.
            if name == "dying" { continue }
            let isFailure = name != "good"
            #expect(try session.field("failures", of: name) == (isFailure ? "1" : "0"), "\(name)")
        }
        #expect(try session.field("result", of: "missing").contains("not found"))
        #expect(try session.field("result", of: "masked").contains("masked"))
        #expect(try session.shell("cat \"$HOME/good\"") == "com.example.good b c\n")
    }

    @Test(arguments: anyBusKind())
    func `restart ends and restarts what is running, a unit or a command`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.unit(
            "server.service",
            "[Service]",
            "Type=exec",
            "ExecStart=/bin/sh -c 'echo run >>$HOME/unit; exec sleep 1000'"
        )
        try session.entry("unit", "name = com.example.go", "start = server.service", "on-busy = restart")
        try session.entry(
            "command",
            "name = com.example.go",
            "run = sh -c 'echo run >>$HOME/command; exec sleep 1000'",
            "on-busy = restart"
        )
        try session.startAgent()
        for count in 1...3 {
            try session.shell("notify-post com.example.go")
            try session.until(
                "has unit \(count) && has command \(count)"
            )
            try session.until("! notify-lifecycle launches -q | grep -qv ' running '")
        }
        #expect(
            try session.shell("systemctl --user list-units --plain --no-legend 'notifybus-launch-*' | wc -l") == "1\n"
        )
    }

    @Test(arguments: anyBusKind())
    func `what is posted while a program is being restarted goes to the one that follows`(kind: BusKind) throws {
        let session = try UserSession(kind)
        // It hears until it may end. Its start takes until it has registered. Each run has a file of its own.
        try session.unit(
            "observer.service",
            "[Service]",
            "Type=exec",
            "ExecStart=/bin/sh -c 'echo run >>$HOME/runs; exec notify-wait -f com.example.a "
                + ">$HOME/heard.$(cat $HOME/runs | wc -l)'",
            "ExecStartPost=/bin/sh -c 'until notify-lifecycle list -v | grep -q com.example.a; do sleep 0.05; done'",
            "ExecStop=/bin/sh -c '\(untilFinish)'",
            "TimeoutStopSec=infinity"
        )
        try session.shell("systemctl --user set-environment PATH=\"$PATH\"")
        try session.entry(
            "observer",
            "name = com.example.go",
            "name = com.example.a",
            "start = observer.service",
            "on-busy = restart"
        )
        try session.startAgent()
        try session.shell("notify-post com.example.go")
        try session.waitFor("running", of: "observer")
        try session.shell("notify-post com.example.go")
        let state = "systemctl --user show --property=ActiveState --value observer.service"
        try session.until("\(state) | grep -qx deactivating")
        try session.shell("notify-post com.example.a")
        try session.until("grep -qx com.example.a \"$HOME/heard.1\"")
        try session.shell(": >\"$HOME/finish\"")
        try session.until("grep -qx com.example.a \"$HOME/heard.2\"")
        try session.waitFor("running", of: "observer")
        #expect(try session.field("starts", of: "observer") == "2" && session.field("due", of: "observer") == "0")
    }

    @Test(arguments: anyBusKind())
    func `a unit that others have just started is started once more`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.unit(
            "job.service",
            "[Service]",
            "Type=exec",
            "ExecStart=/bin/sh -c 'echo run >>$HOME/runs; \(untilFinish)'"
        )
        // The sender does not matter, so the agent need not ask the bus first.
        try session.entry("job", "name = com.example.go", "start = job.service", "from = anyone")
        try session.startAgent()
        // The agent learns of the post before it learns that the unit has been started, but that after this.
        let stopped = try session.shell(
            """
            stop="kill -STOP $agent; until grep -q 'State:.T' /proc/$agent/status; do :; done"
            notify-wait com.example.go --then "$stop; notify-post com.example.go &"
            systemctl --user start job.service
            grep State: /proc/$agent/status
            kill -CONT $agent
            """
        )
        try #require(stopped.contains("T (stopped)"))
        try session.waitFor("running", of: "job")
        #expect(
            try session.field("result", of: "job") == "was running" && session.field("due", of: "job") == "1",
            "\((try? session.shell("notify-lifecycle launches -v; systemctl --user show -P ConditionTimestampMonotonic job.service; cat /proc/uptime")) ?? "")"
        )
        try session.until("has runs 1")
        try session.shell(": >\"$HOME/finish\"")
        try session.until("has runs 2")
        try session.waitFor("idle", of: "job")
        #expect(try session.field("due", of: "job") == "0")
    }

    @Test(arguments: anyBusKind())
    func `files that appear, change or disappear count at once; a broken one doesn't affect the others`(kind: BusKind)
        throws
    {
        let session = try UserSession(kind)
        try session.startAgent()
        #expect(try session.shell("busctl --user list | grep -c org.notifybus.Launch1 || true") == "0\n")
        let run = "run = sh -c 'echo $NOTIFY_NAME >>$HOME/runs'"
        try session.entry("one", "name = com.example.one", run)
        try session.waitFor("idle", of: "one")
        try session.entry("broken", "name = com.example.two")
        try session.waitFor("broken", of: "broken")
        try session.shell("notify-post com.example.one com.example.two")
        try session.until("grep -qx com.example.one \"$HOME/runs\"")
        try session.entry("broken", "name = com.example.two", run)
        try session.waitFor("idle", of: "broken")
        try session.shell("chmod o+w \"$HOME/.config/notifybus/launch.d/one.conf\"; kill -HUP $agent")
        try session.waitFor("broken", of: "one")
        try session.shell("notify-post com.example.one com.example.two")
        try session.until("grep -qx com.example.two \"$HOME/runs\"")
        try session.shell("rm \"$HOME\"/.config/notifybus/launch.d/*")
        try session.until("[[ -z $(notify-lifecycle launches) || $(notify-lifecycle launches -q) == '' ]]")
        try session.until("! busctl --user list | grep -q org.notifybus.Launch1")
        #expect(try session.lines("runs") == 2)
    }

    @Test(arguments: anyBusKind())
    func `an agent killed in any state is followed by one that works`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.job("echo run >>$HOME/runs; \(untilFinish)")
        try session.entry("idle", "name = com.example.idle", "start = job.service")
        try session.entry("starting", "name = com.example.starting", "start = job.service")
        try session.entry("settling", "name = com.example.settling", "start = job.service", "settle = 1h")
        try session.entry("limited", "name = com.example.limited", "run = true", "limit = 1/1h")
        try session.entry("running", "name = com.example.running", "run = sh -c '\(untilFinish)'")
        /// Waits until the job has been started so often, and no more often.
        func waitForRuns(_ count: Int) throws {
            try session.until("has runs \(count)")
        }
        var runs = 0
        // At any moment of its start, so also while entries are starting programs.
        try session.shell(
            """
            for i in {1..8}; do
              notify-agent >>"$HOME/agent.log" 2>&1 & agent=$!
              printf -v moment '0.%03d' $((i * 15))
              pause "$moment"
              kill -KILL $agent; wait $agent || true
            done
            """
        )
        for state in ["idle", "settling", "starting", "running", "limited"] {
            try session.shell("rm -f \"$HOME/finish\"")
            try session.startAgent()
            if state != "idle" { try session.shell("notify-post com.example.\(state)") }
            if state == "limited" {
                try session.until("notify-post com.example.limited; notify-lifecycle launches -q | grep -q ' limited '")
            }
            try session.waitFor(state, of: state)
            if state == "starting" { runs += 1 }
            try waitForRuns(runs)
            try session.shell("kill -KILL $agent; wait $agent || true")
            try session.startAgent()
            // It asks which programs are running: those have what they were started for.
            if state == "running" { try session.waitFor("running", of: "running") }
            try session.shell(": >\"$HOME/finish\"")
            try session.until("systemctl --user show --property=ActiveState --value job.service | grep -qx inactive")
            try session.waitFor("idle", of: "idle")
            try session.shell("notify-post com.example.idle")
            runs += 1
            try waitForRuns(runs)
            try session.waitFor("idle", of: "idle")
            try waitForRuns(runs)
            try session.shell("kill $agent; wait $agent || true")
        }
    }

    @Test(arguments: anyBusKind())
    func `notify-launch starts the agent at login only if there is an entry`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.shell(
            """
            units=$HOME/.config/systemd/user
            cp '\(packageFolder)/desktop/systemd/user/notify-launch.service' "$units"
            sed 's|@BINDIR@|'"$(dirname "$(command -v notify-agent)")"'|' \
              '\(packageFolder)/desktop/systemd/user/notify-agent.service.in' >"$units/notify-agent.service"
            systemctl --user daemon-reload
            systemctl --user start notify-launch.service
            """
        )
        let states = "systemctl --user is-active notify-launch.service notify-agent.service || true"
        #expect(try session.shell(states) == "inactive\ninactive\n")
        try session.entry("job", "name = com.example.go", "run = sh -c 'echo run >$HOME/runs'")
        try session.shell("systemctl --user start notify-launch.service")
        #expect(try session.shell(states) == "active\nactive\n")
        try session.waitFor("idle", of: "job")
        try session.shell("notify-post com.example.go")
        try session.until("grep -q run \"$HOME/runs\"")
        // A reload reads the files again.
        try session.entry("more", "name = com.example.more", "run = true")
        try session.shell("systemctl --user reload notify-agent.service")
        try session.waitFor("idle", of: "more")
    }

    @Test(arguments: anyBusKind())
    func `the first file in a running session starts the agent, and works`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.shell(
            """
            units=$HOME/.config/systemd/user
            cp '\(packageFolder)/desktop/systemd/user/'notify-launch.{service,path} "$units"
            sed 's|@BINDIR@|'"$(dirname "$(command -v notify-agent)")"'|' \
              '\(packageFolder)/desktop/systemd/user/notify-agent.service.in' >"$units/notify-agent.service"
            systemctl --user daemon-reload
            systemctl --user start notify-launch.service
            """
        )
        let states = "systemctl --user is-active notify-launch.path notify-launch.service notify-agent.service || true"
        #expect(try session.shell(states) == "active\ninactive\ninactive\n")
        try session.entry("job", "name = com.example.go", "run = sh -c 'echo run >$HOME/runs'")
        try session.until("[[ $(systemctl --user is-active notify-agent.service) == active ]]")
        try session.waitFor("idle", of: "job")
        try session.shell("notify-post com.example.go")
        try session.until("grep -q run \"$HOME/runs\"")
        // An agent that the user stops stays stopped.
        try session.shell("systemctl --user stop notify-agent.service; pause 1")
        #expect(try session.shell(states) == "active\nactive\ninactive\n")
    }

    @Test func `sessions side by side don't see each other's control groups`() throws {
        let (one, other) = (try UserSession(.daemon), try UserSession(.daemon))
        try one.unit("job.service", "[Service]", "ExecStart=/bin/sleep 1000")
        let count = "find /sys/fs/cgroup -name job.service | wc -l"
        try one.shell("systemctl --user start job.service")
        #expect(try one.shell(count) == "1\n")
        #expect(try other.shell(count) == "0\n")
        // Programs such as GNOME Shell recognize a user's units by this path.
        let path = "user.slice/user-0.slice/user@0.service/app.slice/job.service"
        #expect(try one.shell("cat /sys/fs/cgroup/\(path)/cgroup.procs | wc -l") == "1\n")
    }
}

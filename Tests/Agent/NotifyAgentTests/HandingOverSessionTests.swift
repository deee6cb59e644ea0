// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// An agent that a real service manager restarts.
@Suite(.enabled(if: UserSession.obstacle == nil, "\(UserSession.obstacle ?? "")"))
struct HandingOverSessionTests {
    private static let rounds = isLongRun ? 100 : 3

    /// Also defines what the tests ask of a frozen program while agents follow each other.
    private func startAgentUnit(_ session: UserSession) throws {
        try session.agentUnit()
        try session.shell(
            """
            systemctl --user start notify-agent
            begin() { began=${EPOCHREALTIME/./} slow=; }
            # The agent gives systemd half a second to do what leaves the program frozen.
            check_time() { (( ${EPOCHREALTIME/./} - $1 < 500000 )) || slow=yes; }
            restart() { local at=${EPOCHREALTIME/./}; systemctl --user restart notify-agent; check_time "$at"; }
            # A program waits for two seconds until an agent answers it. Then it goes on without, and hears each name once.
            answers() {
              local state
              until state=$(notify-state com.example.state); do
                late=yes
                (( ${EPOCHREALTIME/./} - began < 60000000 )) || return
              done
              (( ${EPOCHREALTIME/./} - began < 1500000 )) || late=yes
              [[ $state == 42 ]]
            }
            # On a busy machine that may be too little, and the next agent may come after three seconds, when it has been thawed. It
            # is not asked again.
            is_stopped() {
              [[ $thawed || $(sed -n 's/^State:[[:space:]]*\\(.\\).*/\\1/p' /proc/$1/status) == T ]] && return
              [[ ! $slow ]] && (( ${EPOCHREALTIME/./} - began < 3000000 )) || thawed=yes
              [[ $thawed ]]
            }
            """
        )
    }

    /// The suspended program has heard these once each, and others only if an agent was late on a busy machine.
    private func expectSuspendedHeard(_ expected: [String], _ session: UserSession) throws {
        let heard = try session.shell("cat \"$HOME/heard\"").split(separator: "\n").map(String.init)
        #expect(Set(expected).subtracting(heard) == [])
        guard try session.shell("echo $late") == "\n" else { return }
        #expect(heard.sorted() == expected.sorted())
    }

    /// Has the frozen program hear one more name, if it was not thawed on a busy machine.
    private func expectFrozenHears(_ session: UserSession) throws {
        guard try session.shell("echo $thawed") == "\n" else { return }
        try session.shell("notify-lifecycle resume $two && notify-post com.example.n2")
        try session.until("grep -q n2 \"$HOME/frozen\"")
        #expect(try session.shell("cat \"$HOME/frozen\"") == "com.example.n1\ncom.example.n2\n")
    }

    @Test(arguments: busKinds)
    func `an agent that its service manager restarts hands over what it knows`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try startAgentUnit(session)
        try session.shell(
            """
            notify-wait -v -f com.example.state $(seq -f com.example.n%g 0 799) com.example.last >"$HOME/heard" 2>"$HOME/log" & one=$!
            notify-wait -v -f com.example.n1 com.example.n2 >"$HOME/frozen" 2>"$HOME/frozen.log" & two=$!
            """
        )
        try session.until("grep -q live \"$HOME/log\" && grep -q live \"$HOME/frozen.log\"")
        try session.shell("notify-state set com.example.state 42 && notify-lifecycle suspend $one")
        try session.shell("notify-lifecycle suspend --freeze $two && notify-post com.example.n1")
        // Posts all the time, of every name but some.
        try session.shell(
            """
            while [[ ! -e "$HOME/done" ]]; do seq -f com.example.n%g 0 3 699; pause 0.01; done | notify-post - & poster=$!
            for i in $(seq \(Self.rounds)); do
              begin
              restart
              notify-post com.example.n700
              answers || wrong="the state is lost"
              is_stopped $two || wrong="it runs"
            done
            touch "$HOME/done"; wait $poster; echo "$wrong"; [[ -z $wrong ]]
            """,
            timeout: .seconds(600)
        )
        try session.shell("notify-lifecycle resume $one && notify-post com.example.last")
        try session.until("grep -q last \"$HOME/heard\"")
        let expected =
            stride(from: 0, to: 700, by: 3).map { "com.example.n\($0)" } + ["com.example.n1", "com.example.n700"]
        try expectSuspendedHeard(expected + ["com.example.last"], session)
        try expectFrozenHears(session)
    }

    @Test(arguments: busKinds)
    func `an agent that its service manager stops leaves nobody stopped`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try startAgentUnit(session)
        try session.shell("notify-wait -v -f com.example.a >\"$HOME/heard\" 2>\"$HOME/log\" & one=$!")
        try session.until("grep -q live \"$HOME/log\"")
        try session.shell("notify-lifecycle suspend --freeze $one && systemctl --user stop notify-agent")
        try session.until("grep -q '^State:.[SR]' /proc/$one/status")
    }

    // MARK: - Three in a row

    /// The second one is stopped at some moment of its start, so that it has gone no further when it is asked to end.
    @Test(arguments: busKinds)
    func `an agent that is restarted as soon as it has started passes on what it was left`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.entry(
            "limited",
            "name = com.example.limited",
            "run = sh -c 'echo run >>$HOME/limited'",
            "limit = 1/3600s"
        )
        try session.shell("printf '[nap]\\napps = org.example.Editor\\n' >\"$HOME/.config/notifybus/nap.conf\"")
        try startAgentUnit(session)
        try session.until("notify-lifecycle launches -q >\"$HOME/list\" && ! grep -q waking \"$HOME/list\"")
        try session.shell("notify-post com.example.limited")
        try session.until("has limited 1")
        try session.waitFor("idle", of: "limited")
        try session.shell("notify-post com.example.limited")
        try session.waitFor("limited", of: "limited")
        try session.shell(
            """
            notify-wait -v -f com.example.state $(seq -f com.example.n%g 0 399) com.example.last >"$HOME/heard" 2>"$HOME/log" & one=$!
            notify-wait -v -f com.example.n1 com.example.n2 >"$HOME/frozen" 2>"$HOME/frozen.log" & two=$!
            """
        )
        try session.until("grep -q live \"$HOME/log\" && grep -q live \"$HOME/frozen.log\"")
        try session.shell(
            """
            notify-state set com.example.state 42 && notify-lifecycle nap off && notify-lifecycle suspend $one &&
              notify-lifecycle suspend --freeze $two && notify-post com.example.n1
            """
        )
        try session.shell(
            "group=/sys/fs/cgroup$(systemctl --user show -P ControlGroup notify-agent)/cgroup.procs; [[ -e $group ]]"
        )
        let moments = isLongRun ? 200 : 12
        for moment in 0..<moments {
            try session.shell(
                """
                old=$(systemctl --user show -P MainPID notify-agent)
                notify-post com.example.n\(100 + moment)
                begin
                systemctl --user restart --no-block notify-agent
                new=; until { read -r new <"$group"; } 2>/dev/null; [[ $new && $new != "$old" ]]; do :; done
                check_time "$began"
                # Until then its manager waits for it, see vfork(2), and would be stopped as well.
                while [[ $(</proc/$new/comm) == systemd ]]; do :; done
                pause 0.\(moment < 2 ? "00" : moment < 20 ? "0" : "")\(moment < 2 ? moment : moment * 5)
                kill -STOP $new
                restart
                answers || wrong="the state is lost at moment \(moment)"
                is_stopped $two || wrong="it runs at moment \(moment)"
                notify-lifecycle status | grep -q 'naps:.*off' || wrong="naps are on at moment \(moment)"
                echo "$wrong"; [[ -z $wrong ]]
                """
            )
            #expect(try session.field("due", of: "limited") == "1", "at moment \(moment)")
        }
        try session.shell("notify-lifecycle resume $one && notify-post com.example.last")
        try session.until("grep -q last \"$HOME/heard\"")
        let expected = ["com.example.n1"] + (0..<moments).map { "com.example.n\(100 + $0)" } + ["com.example.last"]
        try expectSuspendedHeard(expected, session)
        try expectFrozenHears(session)
        #expect(try session.lines("limited") == 1)
    }

    @Test(arguments: busKinds)
    func `of several agents that take over at once one knows everything`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.startAgent()
        try session.shell("notify-wait -v -f $(seq -f com.example.n%g 0 99) >\"$HOME/heard\" 2>\"$HOME/log\" & one=$!")
        try session.until("grep -q live \"$HOME/log\"")
        try session.shell("notify-lifecycle suspend $one")
        for round in 0..<(isLongRun ? 30 : 3) {
            try session.shell(
                """
                notify-post com.example.n\(round)
                for i in 1 2 3; do notify-agent --replace >>"$HOME/agent.log" 2>&1 & agents="$agents $!"; done
                """
            )
            try session.until("alive=; for i in $agents; do ! kill -0 $i || alive+=.; done; [[ $alive == . ]]")
        }
        try session.shell("notify-lifecycle resume $one && notify-post com.example.n99")
        try session.until("grep -q n99 \"$HOME/heard\"")
        let expected = (0..<(isLongRun ? 30 : 3)).map { "com.example.n\($0)" } + ["com.example.n99"]
        let heard = try session.shell("sort \"$HOME/heard\"")
        let log = try session.shell("cat \"$HOME/agent.log\"")
        #expect(heard == expected.sorted().map { $0 + "\n" }.joined(), "\(log)")
        try session.shell("kill $agents 2>/dev/null; wait $agents || true")
    }

    // MARK: - No successor

    /// Frozen programs may stay stopped for so long, in seconds, whatever becomes of the next agent.
    private let limit = 5

    /// Starts the agent in a unit whose program can be exchanged, and freezes an observer.
    private func freeze(_ session: UserSession) throws {
        try session.agentUnit(
            // The commands are one program, which goes by the name that it is started with.
            "ExecStart=@\(session.home)/agent notify-agent",
            "ExecStopPost=@\(session.home)/agent notify-agent --thaw"
        )
        try session.shell(
            """
            ln -s "$(command -v notify-agent)" "$HOME/agent"
            systemctl --user start notify-agent
            notify-wait -v -f com.example.a >"$HOME/heard" 2>"$HOME/log" & one=$!
            """
        )
        try session.until("grep -q live \"$HOME/log\"")
        try session.shell(
            """
            state() { read -r _ state _ < <(grep State "/proc/$1/status"); echo "$state"; }
            notify-lifecycle suspend --freeze $one
            """
        )
        try session.until("[[ $(state $one) == T ]]")
    }

    @Test(arguments: busKinds)
    func `what is frozen continues if the next agent never starts`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try freeze(session)
        try session.shell("ln -sf /bin/false \"$HOME/agent\"; ! systemctl --user restart notify-agent")
        try session.until("[[ $(state $one) != T ]]", timeout: limit)
        try session.until("! systemctl --user --all list-units 'notify-thaw-*' | grep -q notify-thaw", timeout: limit)
        #expect(try session.shell("ls \"$XDG_RUNTIME_DIR/notifybus\"") == "")
    }

    @Test(arguments: busKinds)
    func `what is frozen continues if the next agent can't read what it gets`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try freeze(session)
        // Another version of the format. One of the two is the connection, which can't be opened.
        try session.shell(
            """
            agent=$(readlink "$HOME/agent"); rm "$HOME/agent"
            cat >"$HOME/agent" <<END
            #!/bin/bash
            for file in 3 4; do printf '\\377\\377\\377\\377' 2>/dev/null 1<>/proc/self/fd/\\$file; done
            exec $agent "\\$@" 2>>$HOME/agent.log
            END
            chmod +x "$HOME/agent"
            systemctl --user restart notify-agent
            """
        )
        try session.until("[[ $(state $one) != T ]]", timeout: limit)
        try session.until("grep -q 'ignored what another agent has left' \"$HOME/agent.log\"")
    }

    @Test(arguments: busKinds)
    func `what is frozen continues if the next agent is killed right after it took over`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try freeze(session)
        try session.shell("notify-agent --replace >\"$HOME/next.log\" 2>&1 & next=$!")
        let bus = "busctl --user call org.freedesktop.DBus / org.freedesktop.DBus"
        try session.until("[[ $(\(bus) GetConnectionUnixProcessID s org.notifybus.Agent1) == \"u $next\" ]]")
        try session.shell("[[ $(state $one) == T ]] && kill -KILL $next")
        try session.until("[[ $(state $one) != T ]]", timeout: limit)
    }

    @Test(arguments: busKinds)
    func `what is frozen continues if the next agent is killed before it took over`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try freeze(session)
        // A caller that only asks for it does nothing with it.
        let agent = "org.notifybus.Agent1 /org/notifybus/Agent1 org.notifybus.Agent1"
        try session.shell("busctl --user call \(agent) HandOver >/dev/null")
        try session.until("[[ $(state $one) != T ]]", timeout: limit)
    }

    @Test(arguments: busKinds)
    func `what is frozen stays so when an agent replaces another, which then has nothing to do with it`(kind: BusKind)
        throws
    {
        let session = try UserSession(kind)
        try freeze(session)
        try session.shell("notify-agent --replace >\"$HOME/next.log\" 2>&1 & next=$!")
        // The other one, its guard, and the commands at the end of its unit have then seen to everything.
        try session.until("grep -q 'took over' \"$HOME/next.log\" && ! systemctl --user is-active -q notify-agent")
        try session.until("! ls \"$XDG_RUNTIME_DIR/notifybus\" | grep -qv \"frozen.$next\\.\"")
        try session.shell("[[ $(state $one) == T ]] && notify-lifecycle resume $one")
        try session.until("[[ $(state $one) != T ]]", timeout: limit)
        try session.shell("kill $next; wait $next || true")
    }
}
